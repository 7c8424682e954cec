# SPDX-License-Identifier: Apache-2.0
"""Statistics of the lab against published values."""

import math

import pytest
from py_tools import need_penstock

need_penstock()
from penstock.lab.experiment.statistics import (  # noqa: E402
    difference,
    summary,
    t_quantile,
)

# Two-sided 95 % points: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
T_95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262,
        10: 2.228, 15: 2.131, 20: 2.086, 30: 2.042, 40: 2.021, 60: 2.000, 100: 1.984}


@pytest.mark.parametrize("freedom", T_95)
def test_quantiles_of_t(freedom):
    assert t_quantile(freedom) == pytest.approx(T_95[freedom], abs=6e-4)


def test_quantiles_of_other_confidences_and_many_degrees():
    assert t_quantile(5, 0.99) == pytest.approx(4.032, abs=6e-4)
    assert t_quantile(10, 0.90) == pytest.approx(1.812, abs=6e-4)
    assert t_quantile(1e6) == pytest.approx(1.95996, abs=1e-4)
    assert T_95[3] > t_quantile(3.5) > T_95[4]


def test_summary_of_known_values():
    found = summary([9.0, 10.0, 11.0, 10.0])
    assert (found.n, found.mean) == (4, 10.0)
    assert found.sd == pytest.approx(math.sqrt(2 / 3))
    assert found.high - 10 == pytest.approx(3.1824 * found.sd / 2, rel=1e-4)
    assert found.low + found.high == pytest.approx(20.0)
    assert summary([0.0, 1.0]).low == 0.0, "a rate is not negative"
    assert summary([-1.0, 1.0]).low < -12.0


def test_summary_of_one_value_has_no_interval():
    found = summary([3])
    assert found.mean == 3.0 and math.isnan(found.sd) and math.isnan(found.low)
    with pytest.raises(ValueError, match="at least one value"):
        summary([])


def test_difference_larger_than_the_noise():
    found = difference([200.0, 202.0, 198.0], [100.0, 101.0, 99.0])
    assert found.ratio == pytest.approx(2.0)
    assert found.low < 2 < found.high and found.low > 1.9 and found.larger_than_noise


def test_difference_within_the_noise():
    found = difference([100.0, 120.0, 80.0], [101.0, 118.0, 85.0])
    assert found.low < 1 < found.high and not found.larger_than_noise


def test_difference_by_the_delta_method():
    """Equal relative variances and sizes: Welch's degrees of freedom are 2 (n - 1)."""
    a, b = [99.0, 100.0, 101.0], [198.0, 200.0, 202.0]
    found = difference(a, b)
    half = T_95[4] * math.sqrt(2 * (0.01**2 / 3))
    assert math.log(found.high / 0.5) == pytest.approx(half, rel=1e-3)


def test_swapping_the_sides_inverts_the_answer():
    a, b = [3.0, 4.0, 5.0], [8.0, 9.0, 11.0, 10.0]
    one, other = difference(a, b), difference(b, a)
    assert one.ratio == pytest.approx(1 / other.ratio)
    assert one.low == pytest.approx(1 / other.high)


def test_difference_of_constant_and_of_single_values():
    assert difference([2.0, 2.0], [1.0, 1.0]) == (2.0, 2.0, 2.0, True)
    assert not difference([2.0, 2.0], [2.0, 2.0]).larger_than_noise
    single = difference([2.0], [1.0, 1.1])
    assert math.isnan(single.low) and not single.larger_than_noise
    for bad in ([], [0.0, 1.0]):
        with pytest.raises(ValueError, match="positive values"):
            difference(bad, [1.0, 2.0])

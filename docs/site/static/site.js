// SPDX-License-Identifier: Apache-2.0
// A page that is opened from a disk may not read other pages: results of a search then have titles
// only.
if (location.protocol === "file:") {
    DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}

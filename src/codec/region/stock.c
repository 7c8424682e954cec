/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a box of a JPEG without an index. For a file of some size it pays to find its entries
 * first, as far as the box needs them, and to decode it with the own decoder then. Everything else
 * is left to libjpeg. */
#include "codec/jpeg/markers.h"
#include "codec/region/region_impl.h"

/* Lanes begin anew at each restart marker: intervals have to be long, too. */
static bool is_large(const PenJpegInfo *info, size_t bytes)
{
    PenTileGeometry g;
    pen__tile_geometry(info, &g);
    uint64_t mcus = (uint64_t)g.mcus_x * g.mcus_y;
    uint64_t interval = info->restart_interval ? info->restart_interval : mcus;
    return bytes >= PEN_REGION_SCAN_BYTES &&
           bytes * PEN_MIN(interval, mcus) / mcus >= PEN_REGION_SCAN_BYTES / 2;
}

/* Does libjpeg take it, and the own decoder, too? */
static bool is_taken(const PenImageHeader *header)
{
    const PenEncoded *image = header->image;
    return image->width <= JPEG_MAX_DIMENSION && image->height <= JPEG_MAX_DIMENSION &&
           pen__own_takes(&header->u.jpeg.info);
}

bool pen__region_scans(const PenImageHeader *header)
{
    const PenJpegInfo *info = &header->u.jpeg.info;
    bool one_scan = info->sof <= PEN_MARKER_SOF1 && info->scan_components == info->components;
    return !header->no_scan && one_scan && pen__own_is_on() &&
           is_large(info, header->image->bytes - info->head_bytes) && is_taken(header);
}

static bool is_worth_it(const PenDecoder *d, const PenImageHeader *header, const PenLimits *limits)
{
    return (d->scans_all ? is_taken(header) : pen__region_scans(header)) &&
           pen__entry_scan_memory(&header->u.jpeg.info, header->image->bytes) <=
               limits->max_memory_bytes / 4;
}

/* PEN_END: it has no entries. */
static int find_entries(PenDecoder *d, const PenImageHeader *header, const PenRegion *region,
                        PenJpegEntries *ret, PenError *reterr)
{
    PenOwnBox at = {region->box, region->shrink};
    const PenJpegHeader *jpeg = &header->u.jpeg;
    int r = d->scan ? PEN_OK : pen__entry_scan_new(&d->scan, reterr);
    return r < 0 ? r
                 : pen__entry_scan_to(d->scan, jpeg, header->image->data, header->image->bytes,
                                      pen__own_last_mcu(&jpeg->info, &at), ret, reterr);
}

int pen__region_stock(PenDecoder *d, const PenImageHeader *header, const PenRegion *region,
                      PenError *reterr)
{
    PenJpegEntries entries;
    int r = d->own ? PEN_OK : pen__own_new(&d->own, reterr);
    if (r < 0)
        return r;
    r = PEN_END;
    if (pen__own_decodes(d->own) && is_worth_it(d, header, region->limits))
        r = find_entries(d, header, region, &entries, reterr);
    if (r < 0)
        return r;
    if (r == PEN_END) {
        pen__entry_scan_free(&d->scan);
        return pen__region_jpeg(d, header, region, reterr);
    }
    PenEncoded image = *header->image;
    PenImageHeader indexed = *header;
    indexed.image = &image;
    image.entries = &entries;
    image.head_bytes = (uint32_t)header->u.jpeg.info.head_bytes;
    return pen__region_indexed(d, &indexed, region, reterr);
}

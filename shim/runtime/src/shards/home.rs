//! Homes and cuts: which shard holds the newest values of which bytes, and which shard runs which rows of a group.
//!
//! Both are the same arithmetic on a [`Partition`] with one tile for each shard: a shard's range follows from its number, and
//! the shard of a byte or row from the byte or row. Nothing here is a table, and nothing loops over shards.

use std::ops::Range;

use crate::partition::Partition;
use crate::view::View;

/// The home of a field: contiguous ranges of its bytes, one for each shard. Tile `t` of the partition holds whole rows of
/// `row_bytes` bytes, counted from `start`; what lies before the first row is the first shard's, what lies behind the last
/// row the last shard's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    pub(crate) tiles: Partition,
    pub(crate) row_bytes: usize,
    pub(crate) start: isize,
}

impl Home {
    /// Where the bytes of a shard begin in a field of `bytes` bytes; the field's end behind the last shard.
    pub(crate) fn edge(&self, shard: usize, bytes: usize) -> usize {
        if shard == 0 {
            0
        } else if shard >= self.tiles.colours {
            bytes
        } else {
            let edge = self.start + (self.tiles.edge(shard) * self.row_bytes) as isize;
            edge.clamp(0, bytes as isize) as usize
        }
    }

    /// The bytes of a field of `bytes` bytes that live at a shard.
    pub(crate) fn range(&self, shard: usize, bytes: usize) -> Range<usize> {
        self.edge(shard, bytes)..self.edge(shard + 1, bytes)
    }

    /// The shard where a byte lives.
    pub(crate) fn shard_of(&self, byte: usize) -> usize {
        self.shard_near(byte as isize)
    }

    fn shard_near(&self, byte: isize) -> usize {
        self.tiles.colour_near((byte - self.start).div_euclid(self.row_bytes.max(1) as isize))
    }

    /// The shards where the bytes of a range live (empty for an empty range).
    pub(crate) fn shards_of(&self, range: &Range<usize>) -> Range<usize> {
        if range.is_empty() { 0..0 } else { self.shard_of(range.start)..self.shard_of(range.end - 1) + 1 }
    }
}

/// How the rows of a group are shared out. Rows before the first shard's and behind the last one's are theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowCut {
    rule: Rule,
    /// Rows of the group.
    pub(crate) rows: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// A shard runs `unit` rows for each row of its tile, counted from `first`.
    Units { tiles: Partition, unit: usize, first: isize },
    /// A shard runs the rows whose single element of `item` bytes lives there: row 0's begins at byte `start`, and they are `stride`
    /// bytes apart.
    Elements { home: Home, start: isize, stride: isize, item: isize },
}

impl RowCut {
    /// The cut of a group that follows nothing: as many whole rows for each shard, or merged rows where there are fewer.
    pub(crate) fn natural(rows: usize, grain: usize, shards: usize) -> RowCut {
        let whole = rows / grain.max(1);
        let (length, unit) = if whole >= shards { (whole, grain) } else { (rows, 1) };
        RowCut { rule: Rule::Units { tiles: Partition { length, colours: shards }, unit, first: 0 }, rows }
    }

    /// The cut that has every row run where a walk's part of it lives; `None` when its rows are no whole parts of the
    /// home's rows, or reach over several of them (as columns do). `shift` is the group row of the walk's row 0.
    pub(crate) fn following(
        home: &Home,
        walk: &View,
        extent: &Range<isize>,
        shift: isize,
        rows: usize,
    ) -> Option<RowCut> {
        let stride = walk.row_stride();
        let reach = (extent.end - extent.start) as usize;
        if stride <= 0 || !home.row_bytes.is_multiple_of(stride as usize) || reach > home.row_bytes.max(stride as usize)
        {
            return None;
        }
        let unit = home.row_bytes / stride as usize;
        let first = div_ceil(home.start - row_start(extent, stride), stride) + shift;
        Some(RowCut { rule: Rule::Units { tiles: home.tiles, unit, first }, rows })
    }

    /// The cut that has every row of a walk with one element in each run where that lives, whatever lies between them; `None` when
    /// an element may be cut by the home's rows.
    pub(crate) fn of_elements(
        home: &Home,
        walk: &View,
        extent: &Range<isize>,
        shift: isize,
        rows: usize,
    ) -> Option<RowCut> {
        let (stride, item) = (walk.row_stride(), walk.item_bytes as isize);
        let whole = |bytes: isize| bytes.rem_euclid(item) == 0;
        if stride <= 0
            || extent.end - extent.start != item
            || !(whole(stride) && whole(extent.start - home.start) && whole(home.row_bytes as isize))
        {
            return None;
        }
        Some(RowCut { rule: Rule::Elements { home: *home, start: extent.start - shift * stride, stride, item }, rows })
    }

    fn edge(&self, shard: usize) -> usize {
        let (Rule::Units { tiles, .. } | Rule::Elements { home: Home { tiles, .. }, .. }) = self.rule;
        if shard == 0 {
            return 0;
        }
        if shard >= tiles.colours {
            return self.rows;
        }
        let edge = match self.rule {
            Rule::Units { unit, first, .. } => first + (tiles.edge(shard) * unit) as isize,
            Rule::Elements { home, start, stride, .. } => {
                div_ceil(home.start + (tiles.edge(shard) * home.row_bytes) as isize - start, stride)
            }
        };
        edge.clamp(0, self.rows as isize) as usize
    }

    /// Most rows of a shard other than the first and the last one.
    pub(crate) fn most_rows(&self) -> usize {
        let longest = |tiles: Partition| tiles.length.div_ceil(tiles.colours.max(1));
        let most = match self.rule {
            Rule::Units { tiles, unit, .. } => longest(tiles) * unit,
            Rule::Elements { home, stride, .. } => (longest(home.tiles) * home.row_bytes).div_ceil(stride as usize),
        };
        // Units of a home that lies across the rows are longer than all of them.
        most.min(self.rows)
    }

    /// The rows that a shard runs.
    pub(crate) fn rows_of(&self, shard: usize) -> Range<usize> {
        self.edge(shard)..self.edge(shard + 1)
    }

    /// The shard that runs a row.
    pub(crate) fn shard_of(&self, row: usize) -> usize {
        match self.rule {
            Rule::Units { tiles, unit, first } => {
                tiles.colour_near((row as isize - first).div_euclid(unit.max(1) as isize))
            }
            Rule::Elements { home, start, stride, .. } => home.shard_near(start + row as isize * stride),
        }
    }

    /// The home that a field gets when what a shard writes of it in its rows is to live there; `None` when rows of the walk
    /// overlap in the field's bytes. Rows of the walk are `stride` bytes apart, `extent` is that of row 0, `shift` its group row.
    pub(crate) fn home(&self, stride: isize, extent: &Range<isize>, shift: isize) -> Option<Home> {
        if stride <= 0 || extent.end - extent.start > stride {
            return None;
        }
        match self.rule {
            Rule::Units { tiles, unit, first } => {
                let start = row_start(extent, stride) + (first - shift) * stride;
                let row_bytes = unit.checked_mul(stride as usize)?;
                // Units that are longer than what is cut must not grow without end, from one array to the next.
                row_bytes.checked_mul(tiles.length.max(1)).filter(|bytes| isize::try_from(*bytes).is_ok())?;
                Some(Home { tiles, row_bytes, start })
            }
            Rule::Elements { home, start, stride: apart, item } => {
                let single = extent.end - extent.start == item;
                (single && apart == stride && start == extent.start - shift * stride).then_some(home)
            }
        }
    }
}

/// Rows before and after its own that each shard needs as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Margin {
    pub(crate) before: usize,
    pub(crate) after: usize,
}

impl Margin {
    /// What a shard with some of `all` rows needs; nothing where it has none.
    pub(crate) fn around(&self, rows: &Range<usize>, all: usize) -> Range<usize> {
        if rows.is_empty() {
            return rows.clone();
        }
        rows.start.saturating_sub(self.before)..(rows.end + self.after).min(all)
    }
}

/// First byte of the stretch of `stride` bytes that is a walk's row: a row of the field where the walk's row lies within one,
/// else from the walk's own first byte.
fn row_start(extent: &Range<isize>, stride: isize) -> isize {
    let row = extent.start.div_euclid(stride);
    if extent.end <= (row + 1) * stride { row * stride } else { extent.start }
}

fn div_ceil(value: isize, by: isize) -> isize {
    -(-value).div_euclid(by)
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    #[test]
    fn a_home_and_its_inverse_agree_on_every_byte() {
        for (length, shards, start, bytes) in [(10, 3, 0, 100), (2, 4, 0, 20), (8, 3, 10, 100), (10, 3, -10, 90)] {
            let home = Home { tiles: Partition { length, colours: shards }, row_bytes: 10, start };
            let mut next = 0;
            for shard in 0..shards {
                let range = home.range(shard, bytes);
                assert_eq!(range.start, next);
                next = range.end;
                assert!(range.clone().all(|byte| home.shard_of(byte) == shard), "{home:?} {shard} {range:?}");
            }
            assert_eq!(next, bytes);
        }
    }

    #[test]
    fn elements_of_a_diagonal_are_run_where_they_live() {
        let home = Home { tiles: Partition { length: 10, colours: 3 }, row_bytes: 80, start: 0 };
        for (offset, step, rows) in [(0, 11, 10), (24, 11, 7), (8, 3, 33), (712, 2, 5)] {
            let walk = View { offset, strides: smallvec![step * 8], item_bytes: 8 };
            let extent = walk.row_extent(&[rows]);
            let cut = RowCut::of_elements(&home, &walk, &extent, 0, rows).expect("elements are whole");
            for shard in 0..3 {
                let lives = |row: &usize| home.shard_of((offset + *row as isize * step * 8) as usize) == shard;
                assert_eq!(cut.rows_of(shard).collect::<Vec<_>>(), (0..rows).filter(lives).collect::<Vec<_>>());
                assert!(cut.rows_of(shard).all(|row| cut.shard_of(row) == shard));
            }
            assert_eq!(cut.home(step * 8, &extent, 0), Some(home));
        }
    }

    #[test]
    fn no_shard_has_more_rows_than_there_are() {
        // Rows of 8 bytes, along what is one row of the home.
        let home = Home { tiles: Partition { length: 10, colours: 4 }, row_bytes: 80, start: 0 };
        let walk = View { offset: 0, strides: smallvec![8], item_bytes: 8 };
        let cut = RowCut::following(&home, &walk, &walk.row_extent(&[10]), 0, 10).expect("rows are parts of one");
        assert!(cut.most_rows() <= 10);
    }

    #[test]
    fn columns_of_rows_on_several_shards_follow_none_of_them() {
        let home = Home { tiles: Partition { length: 10, colours: 2 }, row_bytes: 80, start: 0 };
        let turned = View { offset: 0, strides: smallvec![8, 80], item_bytes: 8 };
        assert_eq!(RowCut::following(&home, &turned, &turned.row_extent(&[10, 10]), 0, 10), None);
    }

    #[test]
    fn units_do_not_grow_without_end() {
        let mut home = Home { tiles: Partition { length: 1024, colours: 2 }, row_bytes: 1 << 24, start: 0 };
        let turned = View { offset: 0, strides: smallvec![16, 1 << 14], item_bytes: 16 };
        let fresh = View { offset: 0, strides: smallvec![1 << 14, 16], item_bytes: 16 };
        for _ in 0..9 {
            let cut = RowCut::following(&home, &turned, &turned.row_extent(&[1024, 1024]), 0, 1024);
            let Some(next) = cut.and_then(|cut| cut.home(1 << 14, &fresh.row_extent(&[1024, 1024]), 0)) else { return };
            assert_eq!(next.range(0, 1 << 24), 0..1 << 24);
            home = next;
        }
        panic!("{home:?}");
    }

    #[test]
    fn an_inner_view_is_run_where_its_rows_live() {
        // Rows 1..9 of a 10 x 10 field of 8-byte elements, without the first and last column.
        let home = Home { tiles: Partition { length: 10, colours: 2 }, row_bytes: 80, start: 0 };
        let inner = View { offset: 88, strides: smallvec![80, 8], item_bytes: 8 };
        let extent = inner.row_extent(&[8, 8]);
        let cut = RowCut::following(&home, &inner, &extent, 0, 8).expect("rows are whole");
        assert_eq!(cut.rows_of(0), 0..4);
        assert_eq!(cut.rows_of(1), 4..8);
        assert!((0..8).all(|row| cut.rows_of(cut.shard_of(row)).contains(&row)));
        assert_eq!(cut.home(80, &extent, 0), Some(home));
        // A fresh result of the same rows lives where they ran.
        let fresh = View { offset: 0, strides: smallvec![64, 8], item_bytes: 8 };
        let lives = cut.home(64, &fresh.row_extent(&[8, 8]), 0).expect("rows do not overlap");
        assert_eq!(lives.range(0, 512), 0..256);
    }
}

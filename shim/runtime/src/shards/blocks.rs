//! Blocks: the mapper's other policy, which has fields live in rectangles of two axes instead of ranges of rows.
//!
//! A field is taken as a matrix of units (elements, or what lies on further axes for one index of the first two); a grid of shards cuts
//! its rows and its columns. Each axis is a [`Home`] whose bytes are indices, and a group's part follows from it as a [`RowCut`] does.
//! Promises what `home` does: a shard's rectangle and the shards that a rectangle touches are arithmetic, and nothing loops over shards.

use std::ops::Range;

use smallvec::smallvec;

use super::home::{Home, RowCut};
use super::runs::add_runs;
use crate::partition::Partition;
use crate::view::View;

/// How much longer than the least surface that of blocks with fewer columns may be: then shapes that are nearly alike are cut alike.
const SURFACE_SLACK: (u128, u128) = (11, 10);

/// Rows and columns of some matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rectangle {
    pub(crate) rows: Range<usize>,
    pub(crate) columns: Range<usize>,
}

impl Rectangle {
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() || self.columns.is_empty()
    }

    /// What both hold.
    pub(crate) fn overlap(&self, other: &Rectangle) -> Rectangle {
        let both = |left: &Range<usize>, right: &Range<usize>| left.start.max(right.start)..left.end.min(right.end);
        Rectangle { rows: both(&self.rows, &other.rows), columns: both(&self.columns, &other.columns) }
    }

    /// The same rectangle, seen from a place `down` rows and `along` columns before.
    fn moved(&self, (down, along): (usize, usize)) -> Rectangle {
        let by = |range: &Range<usize>, by: usize| range.start + by..range.end + by;
        Rectangle { rows: by(&self.rows, down), columns: by(&self.columns, along) }
    }

    /// Where it would be in a matrix that lies with `length` rows or columns at `place` of this one.
    fn within(&self, place: (usize, usize), length: (usize, usize)) -> Rectangle {
        let clip = |range: &Range<usize>, place: usize, length: usize| {
            range.start.saturating_sub(place).min(length)..range.end.saturating_sub(place).min(length)
        };
        Rectangle { rows: clip(&self.rows, place.0, length.0), columns: clip(&self.columns, place.1, length.1) }
    }
}

/// A field's memory as rows of `pitch` bytes with a unit every `unit` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Matrix {
    pub(crate) pitch: usize,
    pub(crate) unit: usize,
    /// Rows and columns.
    pub(crate) length: (usize, usize),
}

impl Matrix {
    /// The matrix of a field of `bytes` bytes; None where it does not consist of whole rows and units.
    pub(crate) fn new(bytes: usize, pitch: isize, unit: isize) -> Option<Matrix> {
        let (pitch, unit) = (usize::try_from(pitch).ok()?, usize::try_from(unit).ok()?);
        let whole = |all: usize, part: usize| part > 0 && all > 0 && all.is_multiple_of(part);
        (whole(bytes, pitch) && whole(pitch, unit)).then(|| Matrix {
            pitch,
            unit,
            length: (bytes / pitch, pitch / unit),
        })
    }

    /// Adds the bytes of a rectangle that lie in a range to what is in `runs`, in order.
    pub(crate) fn add_runs(&self, rectangle: &Rectangle, clip: &Range<usize>, runs: &mut Vec<Range<usize>>) {
        if rectangle.is_empty() {
            return;
        }
        let start = rectangle.rows.start * self.pitch + rectangle.columns.start * self.unit;
        let strides = smallvec![self.pitch.cast_signed(), self.unit.cast_signed()];
        let view = View { offset: start.cast_signed(), strides, item_bytes: self.unit };
        add_runs(&view, &[rectangle.rows.len(), rectangle.columns.len()], clip, 0, runs);
    }

    /// The bytes of a rectangle, in order.
    pub(crate) fn runs(&self, rectangle: &Rectangle) -> Vec<Range<usize>> {
        let mut runs = Vec::new();
        self.add_runs(rectangle, &(0..self.pitch * self.length.0), &mut runs);
        runs
    }
}

/// The home of a field in blocks: shard `r * columns + c` of the grid has the matrix's rows of tile `r` and columns of tile `c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    pub(crate) matrix: Matrix,
    pub(crate) rows: Home,
    pub(crate) columns: Home,
}

impl Blocks {
    /// The rectangle of a shard.
    pub(crate) fn block(&self, shard: usize) -> Rectangle {
        let (row, column) = (shard / self.columns.tiles.colours, shard % self.columns.tiles.colours);
        let (rows, columns) = self.matrix.length;
        Rectangle { rows: self.rows.range(row, rows), columns: self.columns.range(column, columns) }
    }

    /// The shards where units of a rectangle live.
    pub(crate) fn shards_of(&self, rectangle: &Rectangle) -> impl Iterator<Item = usize> + use<> {
        let rows = if rectangle.is_empty() { 0..0 } else { self.rows.shards_of(&rectangle.rows) };
        let columns = if rectangle.is_empty() { 0..0 } else { self.columns.shards_of(&rectangle.columns) };
        in_grid(rows, columns, self.columns.tiles.colours)
    }
}

fn in_grid(rows: Range<usize>, columns: Range<usize>, width: usize) -> impl Iterator<Item = usize> {
    rows.flat_map(move |row| columns.clone().map(move |column| row * width + column))
}

/// How a group's leading axes, taken as rows and columns (one of length 1 where only the other is cut), are shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockCut {
    rows: RowCut,
    columns: RowCut,
    /// Shards beside each other in the grid.
    width: usize,
}

impl BlockCut {
    /// The cut of a group that follows nothing into blocks with (about) the least surface.
    pub(crate) fn natural(length: (usize, usize), shards: usize) -> BlockCut {
        let width = grid_width(length, shards);
        BlockCut {
            rows: RowCut::natural(length.0, 1, shards / width),
            columns: RowCut::natural(length.1, 1, width),
            width,
        }
    }

    /// The cut that has a group of those lengths run where a walk of it lives, which begins at `place`.
    pub(crate) fn following(blocks: &Blocks, place: (usize, usize), length: (usize, usize)) -> Option<BlockCut> {
        Some(BlockCut {
            rows: axis_cut(&blocks.rows, place.0, length.0)?,
            columns: axis_cut(&blocks.columns, place.1, length.1)?,
            width: blocks.columns.tiles.colours,
        })
    }

    /// Where a field lives when what a shard writes of it lives there: a walk that begins at `place` of its matrix.
    pub(crate) fn home(&self, matrix: Matrix, place: (usize, usize)) -> Option<Blocks> {
        Some(Blocks { matrix, rows: axis_home(&self.rows, place.0)?, columns: axis_home(&self.columns, place.1)? })
    }

    /// What a shard runs.
    pub(crate) fn part(&self, shard: usize) -> Rectangle {
        Rectangle { rows: self.rows.rows_of(shard / self.width), columns: self.columns.rows_of(shard % self.width) }
    }

    /// What a shard touches of a walk that begins at `place`.
    pub(crate) fn touched(&self, shard: usize, place: (usize, usize)) -> Rectangle {
        self.part(shard).moved(place)
    }

    /// The shards that touch units of a rectangle through a walk that begins at `place`.
    pub(crate) fn shards_touching(
        &self,
        rectangle: &Rectangle,
        place: (usize, usize),
    ) -> impl Iterator<Item = usize> + use<> {
        let group = rectangle.within(place, (self.rows.rows, self.columns.rows));
        let of = |cut: &RowCut, range: &Range<usize>| {
            if group.is_empty() { 0..0 } else { cut.shard_of(range.start)..cut.shard_of(range.end - 1) + 1 }
        };
        in_grid(of(&self.rows, &group.rows), of(&self.columns, &group.columns), self.width)
    }

    /// Whether it cuts rows alone, as the other policy does.
    pub(crate) fn is_of_rows(&self) -> bool {
        self.width == 1
    }
}

/// A walk along one axis that begins at index `place`, as one over bytes.
fn axis_walk(place: usize) -> (View, Range<isize>) {
    let offset = place.cast_signed();
    (View { offset, strides: smallvec![1], item_bytes: 1 }, offset..offset + 1)
}

fn axis_cut(home: &Home, place: usize, length: usize) -> Option<RowCut> {
    let (walk, extent) = axis_walk(place);
    RowCut::following(home, &walk, &extent, 0, length)
}

fn axis_home(cut: &RowCut, place: usize) -> Option<Home> {
    cut.home(1, &axis_walk(place).1, 0)
}

/// Columns of the grid of shards whose blocks of a matrix have (about) the least surface.
fn grid_width((rows, columns): (usize, usize), shards: usize) -> usize {
    let surface = |width: usize| ((shards / width) as u128 * columns as u128) + (width as u128 * rows as u128);
    let divisors =
        || (1..=shards.isqrt()).filter(|low| shards.is_multiple_of(*low)).flat_map(|low| [low, shards / low]);
    let least = divisors().map(surface).min().unwrap_or(0);
    let near = divisors().filter(|width| surface(*width) * SURFACE_SLACK.1 <= least * SURFACE_SLACK.0);
    near.min().unwrap_or(1)
}

/// The home in whole rows that a field in blocks gets where something needs that.
pub(crate) fn home_in_rows(matrix: &Matrix, shards: usize) -> Home {
    let (rows, columns) = matrix.length;
    let (length, row_bytes) = if rows >= shards { (rows, matrix.pitch) } else { (rows * columns, matrix.unit) };
    Home { tiles: Partition { length, colours: shards }, row_bytes, start: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_have_little_surface_and_prefer_rows() {
        for (length, shards, width) in [
            ((100, 100), 4, 2),
            ((100, 100), 2, 1),
            ((100, 100), 6, 2),
            ((101, 100), 8, 2),
            ((100, 101), 8, 2),
            ((10, 1000), 4, 4),
            ((1000, 10), 4, 1),
            ((100, 100), 7, 1),
            ((4096, 4096), 1024, 32),
        ] {
            assert_eq!(grid_width(length, shards), width, "{length:?} {shards}");
        }
    }

    #[test]
    fn blocks_cover_a_matrix_once_and_shards_invert_them() {
        let matrix = Matrix::new(10 * 12 * 8, 96, 8).expect("it is whole");
        for shards in [1, 4, 6, 12, 200] {
            let cut = BlockCut::natural((8, 10), shards);
            let blocks = cut.home(matrix, (1, 1)).expect("there is a home");
            let mut seen = vec![0; 120];
            for shard in 0..shards {
                let block = blocks.block(shard);
                for (row, column) in block.rows.clone().flat_map(|row| block.columns.clone().map(move |c| (row, c))) {
                    seen[row * 12 + column] += 1;
                    let one = Rectangle { rows: row..row + 1, columns: column..column + 1 };
                    assert_eq!(blocks.shards_of(&one).collect::<Vec<_>>(), vec![shard]);
                }
                // What a shard runs of the inner part is what lives there.
                assert_eq!(cut.touched(shard, (1, 1)).overlap(&block), cut.touched(shard, (1, 1)));
            }
            assert!(seen.iter().all(|count| *count == 1), "{shards} {seen:?}");
            assert_eq!(
                BlockCut::following(&blocks, (1, 1), (8, 10)).and_then(|cut| cut.home(matrix, (1, 1))),
                Some(blocks)
            );
        }
    }

    #[test]
    fn neighbours_that_touch_a_block_are_found() {
        let matrix = Matrix::new(8 * 8 * 8, 64, 8).expect("it is whole");
        let cut = BlockCut::natural((6, 6), 4);
        let blocks = cut.home(matrix, (1, 1)).expect("there is a home");
        let touching = |place| cut.shards_touching(&blocks.block(0), place).collect::<Vec<_>>();
        assert_eq!(touching((1, 1)), vec![0]);
        assert_eq!(touching((0, 1)), vec![0, 2]);
        assert_eq!(touching((1, 0)), vec![0, 1]);
        assert_eq!(touching((0, 0)), vec![0, 1, 2, 3]);
        assert_eq!(touching((2, 2)), vec![0]);
        // One column of the inner part concerns the shards that have it.
        let column = BlockCut::following(&blocks, (1, 7), (6, 1)).expect("it can be followed");
        assert!((0..4).all(|shard| column.part(shard).is_empty() == (shard % 2 == 0)));
    }
}

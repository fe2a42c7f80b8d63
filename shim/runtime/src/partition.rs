//! Partitions: how the row axis of a group is cut into tiles, one colour each.
//!
//! The natural partition cuts contiguous ranges of rows whose lengths differ by at most one. It is a pure function of
//! the length, the number of colours and the least tile, the same on every shard; colour -> range is arithmetic, never
//! a table. The projection of a range through a view (which bytes of an operand a tile needs) is [`project`].

use std::ops::Range;

use crate::view::View;

/// A cut of `0..length` into `colours` contiguous ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// What is cut.
    pub length: usize,
    /// Number of tiles (at least 1).
    pub colours: usize,
}

impl Partition {
    /// The natural partition: as many colours as asked for, but no tile with fewer than `least` indices.
    pub fn natural(length: usize, colours: usize, least: usize) -> Partition {
        let most = length / least.max(1);
        Partition { length, colours: colours.min(most).max(1) }
    }

    /// Where a colour's range begins; the length for the number of colours.
    pub fn edge(&self, colour: usize) -> usize {
        scaled(self.length, colour, self.colours)
    }

    /// The range of a colour.
    pub fn tile(&self, colour: usize) -> Range<usize> {
        self.edge(colour)..self.edge(colour + 1)
    }

    /// The colour of an index: the inverse of [`Partition::tile`].
    pub fn colour(&self, index: usize) -> usize {
        let mut guess = scaled(index, self.colours, self.length.max(1));
        while self.tile(guess).end <= index {
            guess += 1;
        }
        guess
    }

    /// The colour of the index nearest to `index`, which may lie outside.
    pub fn colour_near(&self, index: isize) -> usize {
        if index < 0 {
            0
        } else if index as usize >= self.length {
            self.colours - 1
        } else {
            self.colour(index as usize)
        }
    }
}

/// `value * times / by`, rounded down.
fn scaled(value: usize, times: usize, by: usize) -> usize {
    match value.checked_mul(times) {
        // Most numbers are small, and dividing long ones takes several times as long.
        Some(product) => product / by,
        None => (value as u128 * times as u128 / by as u128) as usize,
    }
}

/// The bytes of an operand that rows `rows` of a launch touch.
pub fn project(view: &View, domain: &[usize], rows: &Range<usize>) -> Range<isize> {
    if domain.is_empty() {
        return view.extent(domain);
    }
    let mut tile: Vec<usize> = domain.to_vec();
    tile[0] = rows.len();
    let start = View { offset: view.offset + rows.start as isize * view.row_stride(), ..view.clone() };
    start.extent(&tile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    #[test]
    fn tiles_cover_the_length_once_and_colours_invert_them() {
        for length in [0, 1, 2, 7, 100, 101] {
            for colours in 1..9 {
                let partition = Partition::natural(length, colours, 1);
                let mut next = 0;
                for colour in 0..partition.colours {
                    let tile = partition.tile(colour);
                    assert_eq!(tile.start, next);
                    next = tile.end;
                    assert!(tile.clone().all(|index| partition.colour(index) == colour));
                }
                assert_eq!(next, length);
            }
        }
    }

    #[test]
    fn a_shifted_view_projects_to_a_halo() {
        let north = View { offset: 0, strides: smallvec![80, 8], item_bytes: 8 };
        let south = View { offset: 160, strides: smallvec![80, 8], item_bytes: 8 };
        assert_eq!(project(&north, &[8, 10], &(2..4)), 160..320);
        assert_eq!(project(&south, &[8, 10], &(2..4)), 320..480);
    }
}

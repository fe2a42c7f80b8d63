//! Merging of sorted stretches, so that several shards share a sort.
//!
//! Promises the order of one sort over all, bit by bit, where [`Survey::is_plain`](super::Survey::is_plain) says that no two different
//! values are equal. Sorts nothing itself.

use super::words::Sortable;

/// How many of the first `taken` elements of the merged order come from `left`.
fn from_left<T: Sortable>(left: &[T], right: &[T], taken: usize) -> usize {
    let mut low = taken.saturating_sub(right.len());
    let mut high = taken.min(left.len());
    while low < high {
        let middle = low.midpoint(high);
        if right[taken - middle - 1].word() < left[middle].word() {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Stretches that are merged side by side: a step needs the one before it, so that a core would wait for most of each.
const LANES: usize = 4;
/// Fewest steps worth a look at all lanes.
const LEAST_STEPS: usize = 32;

/// Two sorted stretches, and room for both.
struct Lane<'a, T> {
    left: &'a [T],
    right: &'a [T],
    out: &'a mut [T],
}

impl<'a, T: Sortable> Lane<'a, T> {
    /// Takes the first `taken` elements of the merged order, with room for them.
    fn split_off(&mut self, taken: usize) -> Lane<'a, T> {
        let first = from_left(self.left, self.right, taken);
        let (left, behind_left) = self.left.split_at(first);
        let (right, behind_right) = self.right.split_at(taken - first);
        let (out, behind_out) = std::mem::take(&mut self.out).split_at_mut(taken);
        *self = Lane { left: behind_left, right: behind_right, out: behind_out };
        Lane { left, right, out }
    }

    /// Steps that can be taken without a look whether a side has come to its end.
    fn safe_steps(&self) -> usize {
        self.left.len().min(self.right.len())
    }

    /// Leaves behind what `steps` steps have filled, of which `taken` came from the left.
    fn pass(&mut self, steps: usize, taken: usize) {
        self.left = &self.left[taken..];
        self.right = &self.right[steps - taken..];
        self.out = &mut std::mem::take(&mut self.out)[steps..];
    }
}

/// Takes as many steps in all lanes; how many elements of each came from the left.
fn step<T: Sortable>(lanes: &mut [Lane<'_, T>; LANES], steps: usize) -> [usize; LANES] {
    let mut taken = [0; LANES];
    for place in 0..steps {
        for (lane, taken) in lanes.iter_mut().zip(&mut taken) {
            let (one, two) = (lane.left[*taken], lane.right[place - *taken]);
            let (word, other) = (one.word(), two.word());
            // Made of the lesser word, since numbers of vector registers would be chosen by a jump; if that is not a number, both are
            // the same.
            lane.out[place] = T::of_word(word.min(other), one);
            *taken += usize::from(word <= other);
        }
    }
    taken
}

/// Merges lanes side by side until one of them has come close to the end of a side.
fn merge_lanes<T: Sortable>(lanes: &mut [Lane<'_, T>; LANES]) {
    loop {
        let steps = lanes.iter().map(Lane::safe_steps).min().unwrap_or(0);
        if steps < LEAST_STEPS {
            return;
        }
        let taken = step(lanes, steps);
        lanes.iter_mut().zip(taken).for_each(|(lane, taken)| lane.pass(steps, taken));
    }
}

/// Merges what is left of a lane.
fn finish<T: Sortable>(Lane { left, right, out }: Lane<'_, T>) {
    let (mut taken, mut other) = (0, 0);
    for place in out.iter_mut() {
        let (Some(one), Some(two)) = (left.get(taken), right.get(other)) else { break };
        let is_right = two.word() < one.word();
        *place = if is_right { *two } else { *one };
        taken += usize::from(!is_right);
        other += usize::from(is_right);
    }
    let (ones, twos) = out[taken + other..].split_at_mut(left.len() - taken);
    ones.copy_from_slice(&left[taken..]);
    twos.copy_from_slice(&right[other..]);
}

/// The merged order of two sorted stretches from position `start` on, as many elements as `out` holds.
pub fn merge<T: Sortable>(left: &[T], right: &[T], start: usize, out: &mut [T]) {
    let length = out.len();
    let (first, last) = (from_left(left, right, start), from_left(left, right, start + length));
    let mut rest = Lane { left: &left[first..last], right: &right[start - first..start + length - last], out };
    let mut lanes: [Lane<'_, T>; LANES] =
        std::array::from_fn(|lane| rest.split_off((lane + 1) * length / LANES - lane * length / LANES));
    merge_lanes(&mut lanes);
    lanes.into_iter().for_each(finish);
}

#[cfg(test)]
mod tests {
    use super::{LANES, LEAST_STEPS, Lane, Sortable, merge, step};

    fn merged<T: Sortable + Default>(left: &[T], right: &[T], pieces: usize) -> Vec<T> {
        let length = left.len() + right.len();
        let mut out = vec![T::default(); length];
        for piece in 0..pieces {
            let (start, end) = (piece * length / pieces, (piece + 1) * length / pieces);
            merge(left, right, start, &mut out[start..end]);
        }
        out
    }

    #[test]
    fn merges_in_pieces_as_in_one() {
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as i64
        };
        for (ones, twos, range) in
            [(0, 0, 9), (0, 5, 9), (5, 0, 9), (1, 1, 2), (100, 3, 5), (64, 81, 1000), (37, 37, 1), (900, 700, 90)]
        {
            let mut left: Vec<i64> = (0..ones).map(|_| next() % range).collect();
            let mut right: Vec<i64> = (0..twos).map(|_| next() % range).collect();
            let mut all: Vec<i64> = left.iter().chain(&right).copied().collect();
            left.sort_unstable();
            right.sort_unstable();
            all.sort_unstable();
            for pieces in [1, 2, 3, 7] {
                assert_eq!(merged(&left, &right, pieces), all);
            }
        }
    }

    #[test]
    fn what_is_not_a_number_comes_last() {
        let nan = -f64::NAN;
        let all = merged(&[-1.0, f64::INFINITY, nan], &[f64::NEG_INFINITY, -0.0, 2.0, nan], 2);
        let bits: Vec<u64> = all.iter().map(|value| value.to_bits()).collect();
        assert_eq!(bits, [f64::NEG_INFINITY, -1.0, -0.0, 2.0, f64::INFINITY, nan, nan].map(f64::to_bits));
    }

    #[test]
    fn lanes_take_zeros_and_what_is_not_a_number_in_their_order() {
        let steps = LEAST_STEPS;
        // Each lane meets another mixture, the second half of a side being what is no number.
        let side = |lane: usize, zero: f64| -> Vec<f64> {
            let mut values: Vec<f64> = (0..steps).map(|place| place as f64 - (lane * 4) as f64).collect();
            values.iter_mut().filter(|value| **value == 0.0).for_each(|value| *value = zero);
            values[steps / 2..].fill(f64::NAN);
            values
        };
        let sides: Vec<[Vec<f64>; 2]> = (0..LANES).map(|lane| [side(lane, -0.0), side(lane + 1, -0.0)]).collect();
        let mut outs = vec![vec![0.0; 2 * steps]; LANES];
        let taken = {
            let mut rooms = outs.iter_mut();
            let mut lanes: [Lane<'_, f64>; LANES] = std::array::from_fn(|lane| Lane {
                left: &sides[lane][0],
                right: &sides[lane][1],
                out: rooms.next().expect("one for each lane"),
            });
            step(&mut lanes, steps)
        };
        for (lane, ((out, [left, right]), taken)) in outs.iter().zip(&sides).zip(taken).enumerate() {
            let mut expected: Vec<f64> = left[..taken].iter().chain(&right[..steps - taken]).copied().collect();
            expected.sort_by_key(|value| value.word());
            let same = out[..steps].iter().zip(&expected).all(|(one, two)| one.to_bits() == two.to_bits());
            assert!(same, "lane {lane}: {:?}", &out[..steps]);
            let all: Vec<f64> = left.iter().chain(right).copied().collect();
            let mut words: Vec<u64> = all.iter().map(|value| value.word()).collect();
            words.sort_unstable();
            assert!(out[..steps].iter().zip(&words).all(|(value, word)| value.word() == *word), "lane {lane}");
        }
    }
}

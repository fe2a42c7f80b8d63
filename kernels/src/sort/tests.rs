//! Sorts by buckets and by lines against the standard library's.
#![expect(unsafe_code, reason = "sorts of memory that the tests own")]

use super::{Each, Lines, Room, Sortable, Survey, Time, place_lines, select_lines, sort_lines};
use super::{select_values, sort_places, sort_values};

fn in_turn(parts: usize, part: &(dyn Fn(usize) + Sync)) {
    (0..parts).rev().for_each(part);
}

const EACH: Each<'static> = &in_turn;

fn numbers(count: usize, range: u64) -> Vec<u64> {
    let mut state = 7u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 20) % range
    };
    (0..count).map(next).collect()
}

fn sorted<T: Sortable>(mut values: Vec<T>, nan: T) -> (Vec<T>, Vec<i64>) {
    let count = values.len();
    let mut words = vec![0u128; count];
    let mut buckets = vec![0u8; count];
    let room = Room { words: words.as_mut_ptr() as usize, buckets: buckets.as_mut_ptr() as usize };
    let mut places = vec![0i64; count];
    let memory = (values.as_mut_ptr() as usize, count);
    // SAFETY: all of it is there, and this thread's.
    unsafe {
        sort_places::<T>(EACH, 3, memory, room, places.as_mut_ptr() as usize);
        sort_values::<T>(EACH, 3, memory, room, nan);
    }
    (values, places)
}

#[test]
fn sorts_as_the_standard_library_does() {
    for (count, range) in [(0, 9), (1, 9), (100, 5), (9000, 3), (9001, 1), (70_000, 40_000), (70_001, 1 << 40)] {
        let values: Vec<i64> = numbers(count, range).iter().map(|number| *number as i64 - 1000).collect();
        let mut expected = values.clone();
        expected.sort_unstable();
        let mut order: Vec<i64> = (0..count as i64).collect();
        order.sort_by_key(|place| values[*place as usize]);
        assert_eq!(sorted(values, 0), (expected, order), "{count} {range}");
    }
}

#[test]
fn ranks_are_found_without_a_sort() {
    for (count, range) in [(1, 9), (10, 5), (9000, 3), (70_000, 1 << 40)] {
        let mut values = numbers(count, range);
        let mut expected = values.clone();
        expected.sort_unstable();
        let ranks = [count / 2, 0, count - 1, count / 3, count / 3];
        // SAFETY: the values are there, and this thread's.
        assert!(unsafe { select_values::<u64>(EACH, 3, (values.as_mut_ptr() as usize, count), &ranks) });
        assert!(ranks.iter().all(|rank| values[*rank] == expected[*rank]), "{count} {range}");
        values.sort_unstable();
        assert_eq!(values, expected);
    }
}

#[test]
fn a_rank_that_the_sample_misses_is_found() {
    // Only the elements that are looked at are small.
    let count = 70_000;
    let mut values: Vec<u64> = (0..count as u64).map(|place| place + 1000).collect();
    (0..count).step_by(4).for_each(|place| values[place] = 5);
    let mut expected = values.clone();
    expected.sort_unstable();
    let ranks: Vec<usize> = (0..count).step_by(997).collect();
    // SAFETY: the values are there, and this thread's.
    assert!(unsafe { select_values::<u64>(EACH, 2, (values.as_mut_ptr() as usize, count), &ranks) });
    assert!(ranks.iter().all(|rank| values[*rank] == expected[*rank]));
    let mut zeros = [0.0, -0.0, 1.0];
    // SAFETY: as above.
    assert!(!unsafe { select_values::<f64>(EACH, 2, (zeros.as_mut_ptr() as usize, 3), &[1]) });
}

#[test]
fn small_numbers_are_counted() {
    for count in [0, 1, 5, 9000] {
        let values: Vec<i8> = numbers(count, 256).iter().map(|number| *number as i8).collect();
        let mut expected = values.clone();
        expected.sort_unstable();
        assert_eq!(sorted(values, 0).0, expected);
        let values: Vec<u16> = numbers(count, 65_536).iter().map(|number| *number as u16).collect();
        let mut expected = values.clone();
        expected.sort_unstable();
        assert_eq!(sorted(values, 0).0, expected);
    }
}

#[test]
fn what_is_not_a_number_comes_last() {
    let nan = -f64::NAN;
    let (values, places) = sorted(vec![nan, 1.0, f64::INFINITY, -0.0, nan, -2.0, f64::NEG_INFINITY], nan);
    let bits: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
    let expected = [f64::NEG_INFINITY, -2.0, -0.0, 1.0, f64::INFINITY, nan, nan].map(f64::to_bits);
    assert_eq!(bits, expected);
    assert_eq!(places, [6, 5, 3, 1, 2, 0, 4]);
    let times = vec![Time(i64::MIN), Time(5), Time(-5), Time(i64::MAX)];
    assert_eq!(sorted(times, Time(0)).0, [Time(-5), Time(5), Time(i64::MAX), Time(i64::MIN)]);
}

#[test]
fn a_survey_tells_whether_sorting_has_one_result() {
    let plain = |values: &[f64]| Survey::of(values.iter().copied()).is_plain();
    assert!(
        plain(&[0.0, 1.0, f64::INFINITY]) && plain(&[1.0, -0.0]) && plain(&[f64::NAN, 2.0, f64::NAN]) && plain(&[])
    );
    assert!(!plain(&[0.0, -0.0]) && !plain(&[f64::NAN, -f64::NAN]));
    assert!(!Survey::of([0.0f32].into_iter()).and(Survey::of([-0.0f32].into_iter())).is_plain());
    assert_eq!(Survey::of([f64::NAN].into_iter()).nan_bits(), f64::NAN.to_bits());
    for values in [vec![], vec![0.0, f64::NAN], vec![-0.0, 1.0], vec![f64::NAN, -f64::NAN]] {
        let survey = Survey::of(values.into_iter());
        assert_eq!(Survey::of_numbers(survey.numbers()), survey);
    }
}

#[test]
fn lines_along_either_axis_are_sorted() {
    let (rows, columns) = (40, 37);
    let values: Vec<i32> = numbers(rows * columns, 50).iter().map(|number| *number as i32).collect();
    for (length, stride, count, apart) in [(columns, 1, rows, columns), (rows, columns, columns, 1)] {
        let mut own = values.clone();
        let mut places = vec![0i64; own.len()];
        let lines = |address: usize, bytes: usize| Lines {
            address,
            length,
            stride: (stride * bytes).cast_signed(),
            others: vec![(count, (apart * bytes).cast_signed())],
        };
        let (from, to) = (lines(own.as_mut_ptr() as usize, 4), lines(places.as_mut_ptr() as usize, 8));
        // SAFETY: all of it is there, and this thread's.
        unsafe {
            assert!(place_lines::<i32>(EACH, &from, &to));
            select_lines::<i32>(EACH, &from, &[3, 3, 20, length - 1], 0);
        }
        let selected = own.clone();
        // SAFETY: as above.
        unsafe { sort_lines::<i32>(EACH, &from, 0) };
        for line in 0..count {
            let place = |along: usize| line * apart + along * stride;
            let mut order: Vec<i64> = (0..length as i64).collect();
            order.sort_by_key(|along| values[place(*along as usize)]);
            for (along, origin) in order.iter().enumerate() {
                assert_eq!(places[place(along)], *origin);
                assert_eq!(own[place(along)], values[place(*origin as usize)]);
            }
            for rank in [3, 20, length - 1] {
                assert_eq!(selected[place(rank)], own[place(rank)]);
            }
        }
    }
}

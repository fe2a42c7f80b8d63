//! Rows folded into one row: the leading axis of a matrix of floats, several rows at a time.
//!
//! Promises the bits and events of a loop called row after row: each element of the result meets its column in order. Where rows
//! are short, keeps a vector of results in a register over some of them, so that the results' memory is touched once for all.

#![expect(unsafe_code, reason = "reads and writes elements at computed addresses")]

use super::arithmetic::{Add, Binary, Maximum, Minimum, Multiply};
use super::lanes::{Lanes, Width};
use crate::execute::Quiet;

/// Short rows that a register takes in before it is stored.
const TOGETHER: usize = 8;

/// Longest short row in bytes: so many together lie in a page, which the processor reads ahead as one stream.
const SHORT_BYTES: usize = 512;

/// Where the rows are.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    /// The first element of the first row; the elements of a row are contiguous.
    pub(crate) first: *const u8,
    /// Bytes from one row to the next.
    pub(crate) step: isize,
    /// Number of rows.
    pub(crate) rows: usize,
    /// Elements of a row.
    pub(crate) count: usize,
}

/// Folds rows into the contiguous elements at an address.
///
/// Safety: all elements must be there and aligned, and the results apart from the rows.
pub(crate) type RowsFunction = unsafe fn(*mut u8, &Rows);

/// The function that does what calling the loop of this name (see [`crate::program::Loop::name`]) with each row does.
pub(crate) fn function(name: &str) -> Option<RowsFunction> {
    of_width(Width::best(), name)
}

/// The same, in vectors of this width.
pub(super) fn of_width(width: Width, name: &str) -> Option<RowsFunction> {
    Some(match name {
        "add dd->d" => double::<Add>(width),
        "multiply dd->d" => double::<Multiply>(width),
        "maximum dd->d" => double::<Maximum>(width),
        "minimum dd->d" => double::<Minimum>(width),
        "add ff->f" => single::<Add>(width),
        "multiply ff->f" => single::<Multiply>(width),
        "maximum ff->f" => single::<Maximum>(width),
        "minimum ff->f" => single::<Minimum>(width),
        _ => return None,
    })
}

fn double<O: Binary>(width: Width) -> RowsFunction {
    match width {
        Width::Plain => plain::<O, f64>,
        #[cfg(target_arch = "x86_64")]
        Width::Avx2 => avx2::<O, super::lanes::Double4>,
        #[cfg(target_arch = "x86_64")]
        Width::Avx512 => avx512::<O, super::lanes::Double8>,
    }
}

fn single<O: Binary>(width: Width) -> RowsFunction {
    match width {
        Width::Plain => plain::<O, f32>,
        #[cfg(target_arch = "x86_64")]
        Width::Avx2 => avx2::<O, super::lanes::Single8>,
        #[cfg(target_arch = "x86_64")]
        Width::Avx512 => avx512::<O, super::lanes::Single16>,
    }
}

unsafe fn plain<O: Binary, V: Lanes<Item = V>>(results: *mut u8, rows: &Rows) {
    // SAFETY: the caller's.
    unsafe { fold::<O, V>(results, rows) };
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2<O: Binary, V: Lanes>(results: *mut u8, rows: &Rows)
where
    V::Item: Lanes<Item = V::Item>,
{
    // SAFETY: the caller's; the width was found on this processor.
    unsafe { fold::<O, V>(results, rows) };
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
unsafe fn avx512<O: Binary, V: Lanes>(results: *mut u8, rows: &Rows)
where
    V::Item: Lanes<Item = V::Item>,
{
    // SAFETY: the caller's; the width was found on this processor.
    unsafe { fold::<O, V>(results, rows) };
}

#[inline(always)]
unsafe fn fold<O: Binary, V: Lanes>(results: *mut u8, rows: &Rows)
where
    V::Item: Lanes<Item = V::Item>,
{
    let events = O::QUIET.then(Quiet::begin);
    let mut done = 0;
    // SAFETY: the caller's.
    unsafe {
        while rows.count * size_of::<V::Item>() <= SHORT_BYTES && done + TOGETHER <= rows.rows {
            some::<O, V, TOGETHER>(results, rows, done);
            done += TOGETHER;
        }
        while done < rows.rows {
            some::<O, V, 1>(results, rows, done);
            done += 1;
        }
    }
    drop(events);
}

/// Folds `COUNT` rows from row `done` on.
#[inline(always)]
unsafe fn some<O: Binary, V: Lanes, const COUNT: usize>(results: *mut u8, rows: &Rows, done: usize)
where
    V::Item: Lanes<Item = V::Item>,
{
    let first = rows.first.wrapping_offset(rows.step * done.cast_signed());
    let results = results.cast::<V::Item>();
    let mut column = 0;
    // SAFETY: the caller's.
    unsafe {
        while column + V::COUNT <= rows.count {
            let mut value = V::load(results.add(column));
            for row in 0..COUNT {
                let row = first.wrapping_offset(rows.step * row.cast_signed()).cast::<V::Item>();
                value = O::apply(value, V::load(row.add(column)));
            }
            value.store(results.add(column));
            column += V::COUNT;
        }
        while column < rows.count {
            let mut value = results.add(column).read();
            for row in 0..COUNT {
                let row = first.wrapping_offset(rows.step * row.cast_signed()).cast::<V::Item>();
                value = O::apply(value, row.add(column).read());
            }
            results.add(column).write(value);
            column += 1;
        }
    }
}

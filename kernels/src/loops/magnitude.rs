//! Whether complex numbers are larger than a limit: `abs(z) <= t` as one loop, without the square root where it cannot matter.
//!
//! Promises what the two loops given, one after the other, answer and raise. Squares that differ from the limit's by more than any
//! rounding of either way decide; elements near it, and those whose squares might leave the range of normal numbers, go
//! through the loops themselves. Whether a loop's absolute values are as near as that is tried once on a sample. Which steps are
//! joined so is decided in `execute`.

#![expect(unsafe_code, reason = "inner loops read and write through raw pointers")]

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;

use super::lanes::Width;
use crate::execute::{Quiet, watched};
use crate::program::{Element, Loop, LoopFunction, Number};

/// Elements that are decided together.
const TOGETHER: usize = 64;

/// Of so many it is worth doing them one by one.
const FEW: u32 = 4;

/// The names by which the two loops are known, with their types.
const ABSOLUTE: [(&str, Number); 2] = [("absolute D->d", Number::F64), ("absolute F->f", Number::F32)];

/// Comparisons of a value with a limit, and what they say of one below it.
const COMPARISONS: [(&str, bool); 4] =
    [("less", true), ("less_equal", true), ("greater", false), ("greater_equal", false)];

/// The loops that a joined one does the work of.
struct Joined {
    absolute: Loop,
    compare: Loop,
    limit: Element,
    /// What the comparison says of values below the limit.
    below: bool,
}

/// A float, with the range in which squares decide: parts that are 0 or from `LEAST` to `MOST`, whose ratio has a normal square.
trait Part: Copy + PartialOrd + Default {
    const LEAST: Self;
    const MOST: Self;
    /// More than all roundings together, relatively.
    const MARGIN: f64;

    fn of(value: f64) -> Self;
    fn wide(self) -> f64;
    fn magnitude(self) -> Self;
    fn square(re: Self, im: Self) -> Self;
}

macro_rules! part {
    ($number:ty, $least:expr, $most:expr, $margin:expr) => {
        impl Part for $number {
            const LEAST: $number = $least;
            const MOST: $number = $most;
            const MARGIN: f64 = $margin;

            #[inline(always)]
            fn of(value: f64) -> $number {
                value as $number
            }

            #[inline(always)]
            fn wide(self) -> f64 {
                f64::from(self)
            }

            #[inline(always)]
            fn magnitude(self) -> $number {
                self.abs()
            }

            #[inline(always)]
            fn square(re: $number, im: $number) -> $number {
                re * re + im * im
            }
        }
    };
}

part!(f64, 1e-75, 1e75, 1e-11);
part!(f32, 1e-9, 1e9, 1e-4);

/// The loop of `compare(absolute(z), limit)`, where there is one.
pub(crate) fn joined(absolute: &Loop, compare: &Loop, limit: Element) -> Option<Loop> {
    let (_, number) = ABSOLUTE.into_iter().find(|(name, _)| **name == *absolute.name)?;
    let (ufunc, types) = compare.name.split_once(' ')?;
    let (_, below) = COMPARISONS.into_iter().find(|(name, _)| *name == ufunc)?;
    let is_double = number == Number::F64;
    if types != if is_double { "dd->?" } else { "ff->?" } {
        return None;
    }
    let fits = if is_double { is_decisive::<f64>(&limit) } else { is_decisive::<f32>(&limit) };
    if !fits || !is_near(absolute, is_double) {
        return None;
    }
    let name = format!("{ufunc} of {}", absolute.name);
    let joined = Arc::new(Joined { absolute: absolute.clone(), compare: compare.clone(), limit, below });
    let auxdata = Arc::as_ptr(&joined).cast_mut().cast();
    Some(Loop { auxdata, owner: Some(joined), ..Loop::of(function(is_double), name) })
}

/// The name of a loop of NumPy's by which it is found again, if it may be one of the two.
pub(crate) fn name(ufunc: &str, types: &[Number]) -> Option<String> {
    match types {
        [Number::C128, Number::F64] if ufunc == "absolute" => Some("absolute D->d".to_owned()),
        [Number::C64, Number::F32] if ufunc == "absolute" => Some("absolute F->f".to_owned()),
        [Number::F64, Number::F64, Number::Bool] if is_comparison(ufunc) => Some(format!("{ufunc} dd->?")),
        [Number::F32, Number::F32, Number::Bool] if is_comparison(ufunc) => Some(format!("{ufunc} ff->?")),
        _ => None,
    }
}

fn is_comparison(ufunc: &str) -> bool {
    COMPARISONS.iter().any(|(name, _)| *name == ufunc)
}

fn is_decisive<T: Part>(limit: &Element) -> bool {
    // SAFETY: an element has room for any number, and is aligned for it.
    let limit = unsafe { limit.0.as_ptr().cast::<T>().read() };
    T::LEAST <= limit && limit <= T::MOST
}

/// Whether a loop's absolute values are what squares say, and raise nothing, all over the range in which squares decide.
fn is_near(absolute: &Loop, is_double: bool) -> bool {
    static TRIED: Mutex<Vec<(usize, bool)>> = Mutex::new(Vec::new());
    let address = absolute.function as usize;
    let mut tried = TRIED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, known)) = tried.iter().find(|(known, _)| *known == address) {
        return *known;
    }
    let near = if is_double { tried_on_sample::<f64>(absolute) } else { tried_on_sample::<f32>(absolute) };
    tried.push((address, near));
    near
}

fn tried_on_sample<T: Part>(absolute: &Loop) -> bool {
    let (least, most) = (T::LEAST.wide(), T::MOST.wide());
    let mut values = vec![0.0, least, most, 1.0];
    // Magnitudes all over the range, their significands spread.
    values.extend((0..60).map(|step| least * (most / least).powf(f64::from(step) / 60.0) * 1.37));
    let pairs: Vec<[T; 2]> = values
        .iter()
        .enumerate()
        .flat_map(|(place, re)| values.iter().map(move |im| (place, *re, *im)))
        .map(|(place, re, im)| [T::of(if place % 2 == 0 { re } else { -re }), T::of(im)])
        .collect();
    let mut results = vec![T::default(); pairs.len()];
    let events = watched(|| {
        let data = [pairs.as_ptr().cast_mut().cast::<c_char>(), results.as_mut_ptr().cast()];
        let strides = [2 * size_of::<T>().cast_signed(), size_of::<T>().cast_signed()];
        // SAFETY: the invariant of `Loop`, on as many pairs as results.
        unsafe { call(absolute, &data, pairs.len(), &strides) };
    });
    let near = |([re, im], result): (&[T; 2], &T)| {
        let exact = re.wide().hypot(im.wide());
        (result.wide() - exact).abs() <= exact * T::MARGIN / 16.0
    };
    events == 0 && pairs.iter().zip(&results).all(near)
}

unsafe fn call(kernel: &Loop, data: &[*mut c_char], count: usize, strides: &[isize]) -> c_int {
    let length = count.cast_signed();
    // SAFETY: the caller's, and the invariant of `Loop`.
    unsafe { (kernel.function)(kernel.context, data.as_ptr(), &raw const length, strides.as_ptr(), kernel.auxdata) }
}

fn function(is_double: bool) -> LoopFunction {
    match (Width::best(), is_double) {
        (Width::Plain, true) => plain::<f64>,
        (Width::Plain, false) => plain::<f32>,
        #[cfg(target_arch = "x86_64")]
        (Width::Avx2, true) => avx2::<f64>,
        #[cfg(target_arch = "x86_64")]
        (Width::Avx2 | Width::Avx512, false) => avx2::<f32>,
        #[cfg(target_arch = "x86_64")]
        (Width::Avx512, true) => avx512,
    }
}

macro_rules! loop_of_width {
    ($name:ident $(<$part:ident: $bound:ident>)?, $decide:expr $(, #[$feature:meta])?) => {
        $(#[$feature])?
        unsafe extern "C" fn $name$(<$part: $bound>)?(
            _context: *const c_void,
            data: *const *mut c_char,
            length: *const isize,
            strides: *const isize,
            auxdata: *mut c_void,
        ) -> c_int {
            // SAFETY: the invariant of `Loop`; the owner keeps what `auxdata` points to.
            unsafe { run(&*auxdata.cast::<Joined>(), data, (*length).cast_unsigned(), strides, $decide) }
        }
    };
}

loop_of_width!(plain<T: Part>, |values, bytes, count, limits| decide::<T>(values, bytes, count, limits));
#[cfg(target_arch = "x86_64")]
loop_of_width!(
    avx2<T: Part>,
    |values, bytes, count, limits| decide::<T>(values, bytes, count, limits),
    #[target_feature(enable = "avx2")]
);
#[cfg(target_arch = "x86_64")]
loop_of_width!(
    avx512,
    |values, bytes, count, limits| {
        if count == TOGETHER { decide_doubles(values, bytes, limits) } else { decide::<f64>(values, bytes, count, limits) }
    },
    #[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
);

/// Squares that decide, and what is said below them.
#[derive(Clone, Copy)]
struct Limits<T> {
    under: T,
    over: T,
    below: bool,
}

#[inline(always)]
unsafe fn run<T: Part>(
    joined: &Joined,
    data: *const *mut c_char,
    count: usize,
    strides: *const isize,
    decide: impl Fn(*const [T; 2], *mut u8, usize, Limits<T>) -> u64,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        let [input, output] = *data.cast::<[*mut c_char; 2]>();
        let [input_stride, output_stride] = *strides.cast::<[isize; 2]>();
        if input_stride != 2 * size_of::<T>().cast_signed() || output_stride != 1 {
            return by_loops::<T>(joined, (input, input_stride), (output, output_stride), count);
        }
        let limit = joined.limit.0.as_ptr().cast::<T>().read().wide();
        let square = limit * limit;
        let (under, over) = (T::of(square * (1.0 - T::MARGIN)), T::of(square * (1.0 + T::MARGIN)));
        let limits = Limits { under, over, below: joined.below };
        let mut left: SmallVec<[(usize, u64); 16]> = SmallVec::new();
        let quiet = Quiet::begin();
        for start in (0..count).step_by(TOGETHER) {
            // The last ones with some that are done already: what is said of them is the same again.
            let start = start.min(count.saturating_sub(TOGETHER));
            let some = TOGETHER.min(count - start);
            let open = decide(input.cast::<[T; 2]>().add(start), output.cast::<u8>().add(start), some, limits);
            if open != 0 {
                left.push((start, open));
            }
        }
        drop(quiet);
        for (start, mut open) in left {
            let item = |place: usize| {
                let place = (start + place).cast_signed();
                ((input.offset(input_stride * place), input_stride), (output.offset(place), 1))
            };
            if open.count_ones() > FEW {
                let (from, to) = item(0);
                let code = by_loops::<T>(joined, from, to, TOGETHER.min(count - start));
                if code != 0 {
                    return code;
                }
                continue;
            }
            while open != 0 {
                let (from, to) = item(open.trailing_zeros() as usize);
                open &= open - 1;
                let code = by_loops::<T>(joined, from, to, 1);
                if code != 0 {
                    return code;
                }
            }
        }
    }
    0
}

/// Answers for some elements, and a bit for each of those that are open.
///
/// There must be `count` elements, [`TOGETHER`] at most.
#[inline(always)]
fn decide<T: Part>(values: *const [T; 2], bytes: *mut u8, count: usize, limits: Limits<T>) -> u64 {
    let fits = |part: T| (part == T::default()) | (part.magnitude() >= T::LEAST) & (part.magnitude() <= T::MOST);
    let mut open = 0;
    for place in 0..count {
        // SAFETY: the caller's.
        let [re, im] = unsafe { values.add(place).read() };
        let square = T::square(re, im);
        let (is_below, is_above) = (square < limits.under, square > limits.over);
        let is_open = !(fits(re) & fits(im) & (is_below | is_above));
        open |= u64::from(is_open) << place;
        // SAFETY: the caller's.
        unsafe { bytes.add(place).write(u8::from(is_below == limits.below)) };
    }
    open
}

/// As [`decide`], for [`TOGETHER`] elements.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
#[inline]
fn decide_doubles(values: *const [f64; 2], bytes: *mut u8, limits: Limits<f64>) -> u64 {
    use std::arch::x86_64::{
        _CMP_GE_OQ, _CMP_GT_OQ, _CMP_LE_OQ, _CMP_LT_OQ, _CMP_NEQ_UQ, _mm_maskz_mov_epi8, _mm_set1_epi8,
        _mm_storel_epi64, _mm512_abs_pd, _mm512_add_pd, _mm512_cmp_pd_mask, _mm512_loadu_pd, _mm512_mul_pd,
        _mm512_permutex2var_pd, _mm512_set1_pd, _mm512_setr_epi64, _mm512_setzero_pd,
    };

    let (evens, odds) = (_mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15));
    let (under, over) = (_mm512_set1_pd(limits.under), _mm512_set1_pd(limits.over));
    let (least, most, zero) = (_mm512_set1_pd(f64::LEAST), _mm512_set1_pd(f64::MOST), _mm512_setzero_pd());
    let one = _mm_set1_epi8(1);
    let mut any = 0;
    for group in 0..TOGETHER / 8 {
        // SAFETY: the caller's: eight pairs.
        let (first, second) = unsafe {
            let from = values.add(group * 8).cast::<f64>();
            (_mm512_loadu_pd(from), _mm512_loadu_pd(from.add(8)))
        };
        let re = _mm512_abs_pd(_mm512_permutex2var_pd(first, evens, second));
        let im = _mm512_abs_pd(_mm512_permutex2var_pd(first, odds, second));
        let square = _mm512_add_pd(_mm512_mul_pd(re, re), _mm512_mul_pd(im, im));
        let is_below = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(square, under);
        let is_above = _mm512_cmp_pd_mask::<_CMP_GT_OQ>(square, over);
        let is_high = !(_mm512_cmp_pd_mask::<_CMP_LE_OQ>(re, most) & _mm512_cmp_pd_mask::<_CMP_LE_OQ>(im, most));
        let is_low =
            |part| !_mm512_cmp_pd_mask::<_CMP_GE_OQ>(part, least) & _mm512_cmp_pd_mask::<_CMP_NEQ_UQ>(part, zero);
        any |= is_high | is_low(re) | is_low(im) | !(is_below | is_above);
        let set = if limits.below { is_below } else { !is_below };
        // SAFETY: the caller's: eight bytes.
        unsafe { _mm_storel_epi64(bytes.add(group * 8).cast(), _mm_maskz_mov_epi8(u16::from(set), one)) };
    }
    // Which they are is seldom asked.
    if any == 0 { 0 } else { decide::<f64>(values, bytes, TOGETHER, limits) }
}

/// The two loops one after the other, an element at a time where there are few.
unsafe fn by_loops<T: Part>(
    joined: &Joined,
    (input, input_stride): (*mut c_char, isize),
    (output, output_stride): (*mut c_char, isize),
    count: usize,
) -> c_int {
    let item = size_of::<T>().cast_signed();
    let mut between = [T::default(); TOGETHER];
    for start in (0..count).step_by(TOGETHER) {
        let some = TOGETHER.min(count - start);
        let values = between.as_mut_ptr().cast::<c_char>();
        let limit = joined.limit.0.as_ptr().cast_mut().cast::<c_char>();
        let (from, to) = (
            input.wrapping_offset(input_stride * start.cast_signed()),
            output.wrapping_offset(output_stride * start.cast_signed()),
        );
        // SAFETY: the caller's; there is room for `TOGETHER` values between.
        let code = unsafe {
            match call(&joined.absolute, &[from, values], some, &[input_stride, item]) {
                0 => call(&joined.compare, &[values, limit, to], some, &[item, 0, output_stride]),
                code => code,
            }
        };
        if code != 0 {
            return code;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn hypot(
        _context: *const c_void,
        data: *const *mut c_char,
        length: *const isize,
        strides: *const isize,
        _auxdata: *mut c_void,
    ) -> c_int {
        // SAFETY: the invariant of `Loop`.
        unsafe {
            let ([from, to], [from_stride, to_stride]) =
                (*data.cast::<[*mut c_char; 2]>(), *strides.cast::<[isize; 2]>());
            for index in 0..*length {
                let [re, im] = from.offset(from_stride * index).cast::<[f64; 2]>().read();
                to.offset(to_stride * index).cast::<f64>().write(re.hypot(im));
            }
        }
        0
    }

    unsafe extern "C" fn less_equal(
        _context: *const c_void,
        data: *const *mut c_char,
        length: *const isize,
        strides: *const isize,
        _auxdata: *mut c_void,
    ) -> c_int {
        // SAFETY: the invariant of `Loop`.
        unsafe {
            let ([left, right, to], [one, other, out]) =
                (*data.cast::<[*mut c_char; 3]>(), *strides.cast::<[isize; 3]>());
            for index in 0..*length {
                let (a, b) =
                    (left.offset(one * index).cast::<f64>().read(), right.offset(other * index).cast::<f64>().read());
                to.offset(out * index).cast::<u8>().write(u8::from(a <= b));
            }
        }
        0
    }

    fn element(value: f64) -> Element {
        let mut element = Element([0; 32]);
        element.0[..8].copy_from_slice(&value.to_ne_bytes());
        element
    }

    #[test]
    fn squares_decide_as_the_loops_do() {
        let (absolute, compare) = (Loop::of(hypot, "absolute D->d"), Loop::of(less_equal, "less_equal dd->?"));
        let parts =
            [0.0, -0.0, 1.2, 1.6, 2.0, 2.0_f64.next_up(), 2.0_f64.next_down(), 2.0_f64.sqrt(), 1e-80, 1e-320, 1e80];
        let parts = [&parts[..], &[1e300, f64::INFINITY, f64::NAN, -3.0, 1.0, 0.5]].concat();
        let pairs: Vec<[f64; 2]> = parts.iter().flat_map(|re| parts.iter().map(|im| [*re, *im])).collect();
        let limit = 2.0;
        let joined = joined(&absolute, &compare, element(limit)).expect("a limit in the range");
        for count in [1, 63, 64, 65, 130, pairs.len()] {
            let mut bytes = vec![9_u8; count];
            let data = [pairs.as_ptr().cast_mut().cast::<c_char>(), bytes.as_mut_ptr().cast()];
            // SAFETY: as many pairs as bytes.
            assert_eq!(unsafe { call(&joined, &data, count, &[16, 1]) }, 0);
            let expected: Vec<u8> = pairs[..count].iter().map(|[re, im]| u8::from(re.hypot(*im) <= limit)).collect();
            assert_eq!(bytes, expected);
        }
    }

    #[test]
    fn other_types_and_limits_are_not_joined() {
        let (absolute, compare) = (Loop::of(hypot, "absolute D->d"), Loop::of(less_equal, "less_equal dd->?"));
        for limit in [0.0, -1.0, 1e-200, 1e200, f64::NAN, f64::INFINITY] {
            assert!(joined(&absolute, &compare, element(limit)).is_none());
        }
        assert!(joined(&Loop::of(hypot, "absolute"), &compare, element(2.0)).is_none());
        assert!(joined(&absolute, &Loop::of(less_equal, "less_equal ll->?"), element(2.0)).is_none());
    }
}

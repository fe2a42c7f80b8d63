//! Several exact float operations as one loop: a value goes from operation to operation in vector registers.
//!
//! Promises the bits and events of the operations done one by one: each rounds by itself (never a fused multiply-add), and
//! `trace` finds which of them raised what. Which operations of a program may be joined is decided in `execute`.

#![expect(unsafe_code, reason = "reads and writes elements at computed addresses")]

use super::lanes::{Lanes, Width};

/// What is done to the value: `value + operand` and so on; those that end in `From`, `To` or `By` name the other order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Add,
    AddTo,
    Subtract,
    SubtractFrom,
    Multiply,
    MultiplyBy,
    Divide,
    DivideInto,
    Square,
    Sqrt,
    Reciprocal,
    Negative,
    Absolute,
    Sign,
    /// Nothing: the value is only stored.
    Copy,
}

impl Action {
    /// The action of a ufunc on a value that is its first (or only) operand, or else its second.
    pub(crate) fn of_ufunc(ufunc: &str, value_is_first: bool) -> Option<Action> {
        let (first, second) = match ufunc {
            "add" => (Action::Add, Action::AddTo),
            "subtract" => (Action::Subtract, Action::SubtractFrom),
            "multiply" => (Action::Multiply, Action::MultiplyBy),
            "divide" | "true_divide" => (Action::Divide, Action::DivideInto),
            "square" => (Action::Square, Action::Square),
            "sqrt" => (Action::Sqrt, Action::Sqrt),
            "reciprocal" => (Action::Reciprocal, Action::Reciprocal),
            "negative" => (Action::Negative, Action::Negative),
            "absolute" => (Action::Absolute, Action::Absolute),
            "sign" => (Action::Sign, Action::Sign),
            "copy" => (Action::Copy, Action::Copy),
            _ => return None,
        };
        Some(if value_is_first { first } else { second })
    }
}

/// One operation on the value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) action: Action,
    /// The other operand, where the action has one.
    pub(crate) operand: *const u8,
    /// Whether the other operand is one element for all.
    pub(crate) repeats: bool,
}

/// Operands of a chain: contiguous, but for repeated ones.
#[derive(Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) first: *const u8,
    pub(crate) first_repeats: bool,
    pub(crate) output: *mut u8,
    pub(crate) count: usize,
}

/// Runs a chain.
///
/// Safety: all operands must be there and aligned, the output apart from the others.
pub(crate) type ChainFunction = unsafe fn(&Ends, &[Link]);

/// The function for elements of 4 or 8 bytes.
pub(crate) fn function(item_bytes: usize) -> ChainFunction {
    match (Width::best(), item_bytes) {
        (Width::Plain, 4) => plain::<f32>,
        (Width::Plain, _) => plain::<f64>,
        #[cfg(target_arch = "x86_64")]
        (Width::Avx2, 4) => avx2::<super::lanes::Single8>,
        #[cfg(target_arch = "x86_64")]
        (Width::Avx2, _) => avx2::<super::lanes::Double4>,
        #[cfg(target_arch = "x86_64")]
        (Width::Avx512, 4) => avx512::<super::lanes::Single16>,
        #[cfg(target_arch = "x86_64")]
        (Width::Avx512, _) => avx512::<super::lanes::Double8>,
    }
}

/// Vectors that go through the chain together: enough that finding the next action costs little.
const STRIP: usize = 8;

unsafe fn plain<V: Lanes<Item = V>>(ends: &Ends, links: &[Link]) {
    // SAFETY: the caller's.
    unsafe { run::<V>(ends, links) };
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2<V: Lanes>(ends: &Ends, links: &[Link])
where
    V::Item: Lanes<Item = V::Item>,
{
    // SAFETY: the caller's; the width was found on this processor.
    unsafe { run::<V>(ends, links) };
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl")]
unsafe fn avx512<V: Lanes>(ends: &Ends, links: &[Link])
where
    V::Item: Lanes<Item = V::Item>,
{
    // SAFETY: the caller's; the width was found on this processor.
    unsafe { run::<V>(ends, links) };
}

#[inline(always)]
unsafe fn run<V: Lanes>(ends: &Ends, links: &[Link])
where
    V::Item: Lanes<Item = V::Item>,
{
    let mut done = 0;
    // SAFETY: the caller's.
    unsafe {
        while done + STRIP * V::COUNT <= ends.count {
            strip::<V, STRIP>(ends, links, done);
            done += STRIP * V::COUNT;
        }
        while done + V::COUNT <= ends.count {
            strip::<V, 1>(ends, links, done);
            done += V::COUNT;
        }
        while done < ends.count {
            strip::<V::Item, 1>(ends, links, done);
            done += 1;
        }
    }
}

/// Elements `first..first + N * V::COUNT` through the whole chain.
#[inline(always)]
unsafe fn strip<V: Lanes, const N: usize>(ends: &Ends, links: &[Link], first: usize) {
    // SAFETY: the caller's.
    unsafe {
        let mut values: [V; N] = read(ends.first, ends.first_repeats, first);
        for link in links {
            values = act(values, link, first);
        }
        let output = ends.output.cast::<V::Item>().add(first);
        for (part, value) in values.into_iter().enumerate() {
            value.store(output.add(part * V::COUNT));
        }
    }
}

#[inline(always)]
unsafe fn read<V: Lanes, const N: usize>(operand: *const u8, repeats: bool, first: usize) -> [V; N] {
    let operand = operand.cast::<V::Item>();
    // SAFETY: the caller's.
    unsafe {
        if repeats {
            [V::splat(operand.read()); N]
        } else {
            std::array::from_fn(|part| V::load(operand.add(first + part * V::COUNT)))
        }
    }
}

#[inline(always)]
unsafe fn act<V: Lanes, const N: usize>(values: [V; N], link: &Link, first: usize) -> [V; N] {
    // SAFETY: the caller's.
    unsafe {
        match (link.action, link.repeats) {
            (Action::Add, false) => with_vectors(values, link, first, |value, other| value.add(other)),
            (Action::Add, true) => with_one(values, link, |value, other| value.add(other)),
            (Action::AddTo, false) => with_vectors(values, link, first, |value, other| other.add(value)),
            (Action::AddTo, true) => with_one(values, link, |value, other| other.add(value)),
            (Action::Subtract, false) => with_vectors(values, link, first, |value, other| value.sub(other)),
            (Action::Subtract, true) => with_one(values, link, |value, other| value.sub(other)),
            (Action::SubtractFrom, false) => with_vectors(values, link, first, |value, other| other.sub(value)),
            (Action::SubtractFrom, true) => with_one(values, link, |value, other| other.sub(value)),
            (Action::Multiply, false) => with_vectors(values, link, first, |value, other| value.mul(other)),
            (Action::Multiply, true) => with_one(values, link, |value, other| value.mul(other)),
            (Action::MultiplyBy, false) => with_vectors(values, link, first, |value, other| other.mul(value)),
            (Action::MultiplyBy, true) => with_one(values, link, |value, other| other.mul(value)),
            (Action::Divide, false) => with_vectors(values, link, first, |value, other| value.div(other)),
            (Action::Divide, true) => with_one(values, link, |value, other| value.div(other)),
            (Action::DivideInto, false) => with_vectors(values, link, first, |value, other| other.div(value)),
            (Action::DivideInto, true) => with_one(values, link, |value, other| other.div(value)),
            (Action::Square, _) => values.map(|value| value.mul(value)),
            (Action::Sqrt, _) => values.map(|value| value.sqrt()),
            (Action::Reciprocal, _) => values.map(|value| V::one().div(value)),
            (Action::Negative, _) => values.map(|value| value.neg()),
            (Action::Absolute, _) => values.map(|value| value.abs()),
            (Action::Sign, _) => values.map(|value| value.sign()),
            (Action::Copy, _) => values,
        }
    }
}

#[inline(always)]
unsafe fn with_vectors<V: Lanes, const N: usize>(
    mut values: [V; N],
    link: &Link,
    first: usize,
    action: impl Fn(V, V) -> V,
) -> [V; N] {
    let operand = link.operand.cast::<V::Item>().wrapping_add(first);
    for (part, value) in values.iter_mut().enumerate() {
        // SAFETY: the caller's.
        *value = action(*value, unsafe { V::load(operand.add(part * V::COUNT)) });
    }
    values
}

#[inline(always)]
unsafe fn with_one<V: Lanes, const N: usize>(mut values: [V; N], link: &Link, action: impl Fn(V, V) -> V) -> [V; N] {
    // SAFETY: the caller's.
    let operand = unsafe { V::splat(link.operand.cast::<V::Item>().read()) };
    for value in &mut values {
        *value = action(*value, operand);
    }
    values
}

/// Runs a chain again, an operation at a time over short strips, and calls `done(n)` after operation n of each strip.
///
/// # Safety
/// As for [`ChainFunction`].
pub(crate) unsafe fn trace(item_bytes: usize, ends: &Ends, links: &[Link], done: impl FnMut(usize)) {
    // SAFETY: the caller's.
    unsafe {
        if item_bytes == 4 { trace_items::<f32>(ends, links, done) } else { trace_items::<f64>(ends, links, done) }
    }
}

unsafe fn trace_items<T: Lanes<Item = T>>(ends: &Ends, links: &[Link], mut done: impl FnMut(usize)) {
    let mut first = 0;
    while first < ends.count {
        // SAFETY: the caller's.
        unsafe {
            let mut value: [T; 1] = read(ends.first, ends.first_repeats, first);
            for (number, link) in links.iter().enumerate() {
                value = std::hint::black_box(act(std::hint::black_box(value), link, first));
                done(number);
            }
        }
        first += 1;
    }
}

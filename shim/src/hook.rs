//! The hook on ufuncs: a small-operand call whose result is large becomes deferred, and a call on small deferred arrays whose
//! values are there is NumPy's own on their memory.
//!
//! `x[:, None] + y` on host arrays must not build a giant host array. Every ufunc object has a `vectorcall` pointer that
//! calls and array operators go through; ours looks at the operands first (a few nanoseconds) and passes the call on unless all
//! operands are host arrays or numbers, the result is large, and user code is at that very operation: its running
//! instruction is an operator, or a call in code that names the ufunc. Compiled library code has no frame of its own, so it
//! keeps the host's results.
#![expect(unsafe_code, reason = "replaces the vectorcall pointer of NumPy's ufunc objects")]

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use smallvec::SmallVec;

use crate::frames::{self, Operations};
use crate::intercept;
use crate::mapped;
use crate::numpy_api;
use crate::operators::{self, Outcome};
use crate::protocols;
use crate::resident;
use crate::slots::{self, Object};
use crate::state;

type Vectorcall = unsafe extern "C" fn(Object, *const Object, usize, Object) -> Object;

/// Byte offset of `tp_vectorcall_offset` in a type object (the same in every CPython since 3.8).
const VECTORCALL_OFFSET_FIELD: usize = 56;
/// Marks that the caller left room before the arguments (`PY_VECTORCALL_ARGUMENTS_OFFSET`).
const ARGUMENTS_OFFSET: usize = 1 << (usize::BITS - 1);

/// NumPy's own pointer, the same for all ufuncs.
static ORIGINAL: AtomicUsize = AtomicUsize::new(0);

/// Puts the hook on every ufunc of a module.
pub(crate) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let class = module.getattr("ufunc")?;
    // SAFETY: the field has been at this offset in every CPython since 3.8; for NumPy's ufunc type it is where ufunc objects
    // keep their vectorcall pointer.
    let offset = unsafe { *class.as_ptr().byte_add(VECTORCALL_OFFSET_FIELD).cast::<isize>() };
    if offset <= 0 {
        return Ok(());
    }
    for (_, value) in module.dict().iter() {
        if !value.is_exact_instance(&class) || value.getattr("nout")?.extract::<usize>()? != 1 {
            continue;
        }
        if !value.getattr("signature")?.is_none() {
            continue;
        }
        // SAFETY: `value` is a ufunc, so a vectorcall pointer is at `offset`; the GIL is held while it is replaced, by a
        // function of the same type that lives as long as the process.
        unsafe {
            let slot = value.as_ptr().byte_offset(offset).cast::<usize>();
            if *slot == 0 || *slot == hooked as *const () as usize {
                continue;
            }
            let before = ORIGINAL.load(Ordering::Relaxed);
            if before != 0 && before != *slot {
                continue;
            }
            ORIGINAL.store(*slot, Ordering::Relaxed);
            *slot = hooked as *const () as usize;
        }
    }
    Ok(())
}

/// The replaced vectorcall: passes calls on host arrays and numbers on that cannot make anything large, and looks closer at others.
///
/// # Safety
/// Called by CPython or NumPy under the vectorcall convention, with the GIL.
unsafe extern "C" fn hooked(ufunc: Object, args: *const Object, flagged: usize, names: Object) -> Object {
    let count = flagged & !ARGUMENTS_OFFSET;
    // SAFETY: the convention gives `count` live positional arguments, and the GIL is held; `closer` is called in the same way.
    unsafe {
        let most = match count {
            _ if !names.is_null() => 0,
            1 => most_elements(*args),
            2 => most_elements(*args).saturating_mul(most_elements(*args.add(1))),
            _ => 0,
        };
        if most < state::min_chunk() {
            original()(ufunc, args, flagged, names)
        } else {
            closer(ufunc, args, flagged, names)
        }
    }
}

/// The number of elements of a host array or a number, at least 1; more than there can be for anything else.
///
/// # Safety
/// A live object.
#[inline(always)]
unsafe fn most_elements(operand: Object) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        match numpy_api::exact_array_size(operand) {
            Some(size) => size.max(1),
            None if slots::is_number(operand) => 1,
            None => usize::MAX,
        }
    }
}

/// As [`hooked`], for one or two operands of which one may be ours, or whose result may be large.
///
/// # Safety
/// As for [`hooked`].
#[inline(never)]
unsafe extern "C" fn closer(ufunc: Object, args: *const Object, flagged: usize, names: Object) -> Object {
    // SAFETY: ORIGINAL was stored before any ufunc got the hook, and is NumPy's own vectorcall; the convention gives as many live
    // positional arguments as it says, and the GIL is held.
    unsafe {
        let py = Python::assume_attached();
        let arguments = std::slice::from_raw_parts(args, flagged & !ARGUMENTS_OFFSET);
        let mut most = 1usize;
        let mut any_deferred = false;
        for argument in arguments {
            if mapped::is_read_as_array(Bound::ref_from_ptr(py, argument)) {
                most = most.saturating_mul(numpy_api::geometry(Bound::ref_from_ptr(py, argument)).size());
            } else {
                any_deferred |= slots::is_deferred(*argument) || slots::is_future(*argument);
            }
        }
        if (any_deferred || most >= state::min_chunk())
            && let Some(result) = ours(ufunc, arguments, any_deferred)
        {
            return result;
        }
        original()(ufunc, args, flagged, names)
    }
}

/// NumPy's own vectorcall.
///
/// # Safety
/// A ufunc has the hook.
#[inline]
unsafe fn original() -> Vectorcall {
    // SAFETY: ORIGINAL was stored before any ufunc got the hook.
    unsafe { std::mem::transmute::<usize, Vectorcall>(ORIGINAL.load(Ordering::Relaxed)) }
}

/// The result of a call on deferred operands, or whose result may be large; `None` when NumPy is to do it.
///
/// # Safety
/// The GIL is held and the objects are live.
#[inline(never)]
unsafe fn ours(ufunc: Object, arguments: &[Object], any_deferred: bool) -> Option<Object> {
    // SAFETY: the caller's promise.
    unsafe {
        if any_deferred {
            let py = Python::assume_attached();
            let at_once = resident::call(py, arguments, |operands| {
                original()(ufunc, operands.as_ptr(), operands.len(), std::ptr::null_mut())
            });
            if at_once.is_some() {
                return at_once;
            }
            if numpy_api::inputs(Bound::ref_from_ptr(py, &ufunc)) != arguments.len()
                || !arguments.iter().all(|argument| resident::is_plain(py, *argument))
            {
                return None;
            }
        } else if broadcast_size(arguments) < state::min_chunk() {
            return None;
        }
        // PyO3 wants to know that the GIL is held, so that what ends meanwhile ends at once.
        Python::attach(|py| {
            let mut operands: SmallVec<[&Bound<'_, PyAny>; 2]> = SmallVec::new();
            for argument in arguments {
                operands.push(Bound::ref_from_ptr(py, argument));
            }
            let ufunc = Bound::ref_from_ptr(py, &ufunc);
            let result = if any_deferred {
                protocols::called_plainly(py, ufunc, &operands).map(Some)
            } else {
                outgrown(py, ufunc, &operands)
            };
            match result {
                Ok(result) => result.map(Bound::into_ptr),
                Err(error) => {
                    error.restore(py);
                    Some(std::ptr::null_mut())
                }
            }
        })
    }
}

/// The number of elements of what the host arrays among the arguments broadcast to, if they do.
///
/// # Safety
/// The GIL is held and the objects are live.
unsafe fn broadcast_size(arguments: &[Object]) -> usize {
    // SAFETY: the caller's promise.
    let py = unsafe { Python::assume_attached() };
    let shapes: SmallVec<[&[isize]; 2]> = arguments
        .iter()
        // SAFETY: as above.
        .map(|argument| unsafe { Bound::ref_from_ptr(py, argument) })
        .filter(|argument| mapped::is_read_as_array(argument))
        .map(|argument| numpy_api::geometry(argument).shape)
        .collect();
    let axes = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let longest = |axis: usize| shapes.iter().filter_map(|shape| Some(shape[shape.len().checked_sub(axis)?])).max();
    (1..=axes).fold(1usize, |size, axis| size.saturating_mul(longest(axis).unwrap_or(1) as usize))
}

/// The deferred result of a call on host arrays whose result is large; `None` when NumPy is to do it.
fn outgrown<'py>(
    py: Python<'py>,
    ufunc: &Bound<'py, PyAny>,
    operands: &[&Bound<'py, PyAny>],
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if numpy_api::inputs(ufunc) != operands.len() {
        return Ok(None);
    }
    if !crate::shards::in_program() || !is_at(py, ufunc)? {
        return Ok(None);
    }
    match operators::apply(py, state::shim(py)?, ufunc, operands, None, None)? {
        Outcome::Done(result) => Ok(Some(result)),
        Outcome::Host { .. } => Ok(None),
    }
}

/// The instructions of operators.
static OPERATORS: Operations =
    Operations::new(&["BINARY_OP", "COMPARE_OP", "UNARY_NEGATIVE", "UNARY_INVERT", "UNARY_POSITIVE"]);

/// Whether user code is at this very operation.
fn is_at(py: Python<'_>, ufunc: &Bound<'_, PyAny>) -> PyResult<bool> {
    if !intercept::defers(py) {
        return Ok(false);
    }
    if OPERATORS.are_running(py)? {
        return Ok(true);
    }
    frames::running_instruction_names(py, &ufunc.getattr(pyo3::intern!(py, "__name__"))?)
}

/// The type of a vectorcall pointer, for the size of a slot.
const _: () = assert!(size_of::<Vectorcall>() == size_of::<*const c_void>());

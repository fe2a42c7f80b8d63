//! Random draws: NumPy's generators filling fields.
//!
//! A draw reads the bit generator's state, makes a field, and writes the state back, all under the generator's own lock,
//! so that NumPy and other threads always find the state that NumPy would have left. Draws of known consumption on an
//! engine that jumps move the state on at once and are launches like any other; all others are made on the spot by all
//! workers, and with several shards by each of them, which keeps its own part. Which call is which draw is decided in `legate.draws`; the streams are `legate_kernels::random`'s.
#![expect(unsafe_code, reason = "hands field memory to the kernels")]

use legate_kernels::program::Number;
use legate_kernels::random::{
    Bounding, Draw, Engine, Fill, Finish, MT19937_WORDS, Mt19937, Pcg64, Permutation, Philox, Sfc64, SpareHalf, State,
};
use legate_runtime::{Handle, Operand, Privilege, Work};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use smallvec::smallvec;

use crate::array::DeferredArray;
use crate::dtypes::element;
use crate::memory;
use crate::numpy_api;
use crate::report::How;
use crate::state::{Shim, shim};
use crate::storage;
use crate::task::{Origin, Sink, Source, Task};
use crate::values::Walk;

/// Size of an item's number in bytes.
const NUMBER_BYTES: usize = 4;
/// Longest stretch of a draw that workers make together, in 64-bit words: its values stay in L2.
const LONGEST_STRETCH: usize = 8192;

/// Adds this file's functions to the extension module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(random_fill, module)?)
}

/// An array of `shape` and `dtype` filled by `draw`, a name of the table in this file, with its parameters. `legacy` is
/// the `RandomState` that keeps a spare normal deviate, if the draw concerns it. Raises ValueError for an unknown draw or
/// bit generator, MemoryError as NumPy.
#[pyfunction]
fn random_fill<'py>(
    bit_generator: &Bound<'py, PyAny>,
    legacy: Option<&Bound<'py, PyAny>>,
    draw: &str,
    parameters: &Bound<'py, PyTuple>,
    shape: Vec<usize>,
    dtype: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, DeferredArray>> {
    let py = dtype.py();
    let shim = shim(py)?;
    let draw_of = DRAWS.iter().find(|row| row.0 == draw).ok_or_else(|| unknown("draw", draw))?.1;
    let draw_of = draw_of(parameters, dtype.getattr("itemsize")?.extract()?)?;
    let count: usize = shape.iter().product();
    let item_bytes = draw_of.item_bytes();
    let bytes = count * item_bytes;
    let handle = memory::field(py, shim, bytes, &shape, dtype)?;
    let strides = dense_strides(&shape, item_bytes);
    let target = Target { py, shim, handle: &handle, shape: &shape, strides: &strides, item_bytes, name: draw };
    locked(&bit_generator.getattr("lock")?, || {
        let holder = Holder { bit_generator, legacy };
        let told = holder.read()?;
        let words = shim.settings.min_chunk.clamp(2, LONGEST_STRETCH) / 2 * 2;
        let fill = Fill::with_stretches(&draw_of, state_of(&told)?, count as u64, words as u64);
        holder.write(told, &target.fill(fill)?)
    })?;
    let (phantom, owner) = storage::phantom(handle, dtype, numpy_api::signed(&shape), &strides, 0)?;
    let made = DeferredArray::over(phantom, owner, None)?;
    if shim.settings.report {
        shim.report.lock().note(py, draw, How::Native, 0, 0.0);
    }
    Ok(made)
}

/// A new array that is to be filled.
struct Target<'a, 'py> {
    py: Python<'py>,
    shim: &'a Shim,
    handle: &'a Handle,
    shape: &'a [usize],
    strides: &'a [isize],
    item_bytes: usize,
    /// The draw's name.
    name: &'a str,
}

impl Target<'_, '_> {
    fn count(&self) -> usize {
        self.shape.iter().product()
    }

    /// Fills the field, now or as launches; returns the state afterwards.
    fn fill(&self, fill: Fill) -> PyResult<State> {
        let unfinished = || PyRuntimeError::new_err("a draw ended without its last item");
        let numbered = self.count() <= u32::MAX as usize;
        if fill.slices() && numbered && self.shim.runtime.pool().has_room(self.count() * NUMBER_BYTES) {
            let after = fill.after().ok_or_else(unfinished)?;
            self.launch(fill)?;
            return Ok(after);
        }
        self.fill_now(&fill);
        fill.after().ok_or_else(unfinished)
    }

    /// Fills the field on all workers before it returns; with several shards, each keeps the items that live there.
    fn fill_now(&self, fill: &Fill) {
        let address = self.handle.field().materialize();
        let workers = self.shim.runtime.workers();
        let (parts, item_bytes) = (workers.threads(), self.item_bytes);
        let inner: usize = self.shape.iter().skip(1).product();
        let own = self.shim.runtime.share_out(self.handle.field(), inner * item_bytes, item_bytes);
        let (first, count) = (own.start / item_bytes, own.len() / item_bytes);
        let part = |part| {
            let range = first + count * part / parts..first + count * (part + 1) / parts;
            let place = (address + range.start * item_bytes) as *mut u8;
            // SAFETY: the field is new and long enough, no launch knows it, slices do not overlap, and `each` returns
            // after all its parts.
            unsafe {
                if fill.slices() {
                    fill.slice(range.start as u64..range.end as u64, place);
                } else {
                    fill.work_on(address as *mut u8, &(first as u64..(first + count) as u64));
                }
            }
        };
        self.py.detach(|| workers.each(parts, &part));
    }

    /// Issues two launches, which fuse with each other and with what reads the array: the items' numbers, in a field that
    /// nobody holds, and the items as a function of them.
    fn launch(&self, fill: Fill) -> PyResult<()> {
        let Some(kernel) = fill.into_loop(self.item_bytes, &format!("random {}", self.name)) else {
            return Err(PyRuntimeError::new_err("a draw in slices is a loop"));
        };
        let whole = self.shim.dtypes.descr(self.py, b'I');
        let numbers = memory::field(self.py, self.shim, self.count() * NUMBER_BYTES, self.shape, whole)?;
        let walk = Walk::of(self.shape, self.strides);
        let number_strides = dense_strides(self.shape, NUMBER_BYTES);
        let view = walk.view(0, &number_strides, NUMBER_BYTES);
        let operand = |privilege| Operand { field: numbers.field().clone(), view: view.clone(), privilege };
        let start = element(&0u32.to_ne_bytes());
        let delta = element(&1u32.to_ne_bytes());
        let count = Task::Index { number: Number::U32, start, delta, output: 0 };
        let runtime = &self.shim.runtime;
        crate::shards::check_thread()?;
        runtime.launch("arange".into(), Work::Map, walk.domain(), smallvec![operand(Privilege::Write)], count);
        let draw = Task::Map {
            kernel,
            inputs: smallvec![Source { origin: Origin::Operand(0), item_bytes: NUMBER_BYTES, cast: None }],
            outputs: smallvec![Sink { operand: 1, cast: None }],
            mask: None,
        };
        let view = walk.view(0, self.strides, self.item_bytes);
        let output = Operand { field: self.handle.field().clone(), view, privilege: Privilege::Write };
        let name = format!("random {}", self.name).into();
        let operands = smallvec![operand(Privilege::Read), output];
        crate::shards::check_thread()?;
        crate::selection::before_writing(self.py, self.shim, &operands)?;
        let issued = runtime.launch(name, Work::Map, walk.domain(), operands, draw);
        self.shim.settle(self.py, issued, false)
    }
}

fn dense_strides(shape: &[usize], item_bytes: usize) -> Vec<isize> {
    let mut strides = vec![0; shape.len()];
    let mut next = item_bytes as isize;
    for (stride, length) in strides.iter_mut().zip(shape).rev() {
        *stride = next;
        next *= *length as isize;
    }
    strides
}

/// Runs `body` while holding a Python lock.
fn locked<R>(lock: &Bound<'_, PyAny>, body: impl FnOnce() -> PyResult<R>) -> PyResult<R> {
    lock.call_method0("acquire")?;
    let outcome = body();
    lock.call_method0("release")?;
    outcome
}

fn unknown(what: &str, name: &str) -> PyErr {
    PyValueError::new_err(format!("legate makes no {what} '{name}'"))
}

/// From parameters and item size to a draw.
type MakeDraw = fn(&Bound<'_, PyTuple>, usize) -> PyResult<Draw>;

/// The draws by name.
const DRAWS: [(&str, MakeDraw); 13] = [
    ("uniform", |parameters, _| Ok(Draw::Uniform(finish(parameters)?))),
    ("uniform_f32", |_, _| Ok(Draw::UniformF32)),
    ("normal", |parameters, _| Ok(Draw::Normal(finish(parameters)?))),
    ("normal_f32", |_, _| Ok(Draw::NormalF32)),
    ("lognormal", |parameters, _| Ok(Draw::Normal(exponential_of(finish(parameters)?)))),
    ("exponential", |parameters, _| Ok(Draw::Exponential(finish(parameters)?))),
    ("exponential_f32", |_, _| Ok(Draw::ExponentialF32)),
    ("inverse_exponential", |_, item_bytes| {
        Ok(if item_bytes == 4 { Draw::InverseExponentialF32 } else { Draw::InverseExponential })
    }),
    ("legacy_normal", |parameters, _| Ok(Draw::LegacyNormal(finish(parameters)?))),
    ("legacy_lognormal", |parameters, _| Ok(Draw::LegacyNormal(exponential_of(finish(parameters)?)))),
    ("legacy_exponential", |parameters, _| Ok(Draw::LegacyExponential(finish(parameters)?))),
    ("integers", |parameters, bytes| integers(parameters, bytes, Bounding::Multiply)),
    ("legacy_integers", |parameters, bytes| integers(parameters, bytes, Bounding::Mask)),
];

/// No parameters, a scale, or a location and a scale.
fn finish(parameters: &Bound<'_, PyTuple>) -> PyResult<Finish> {
    let parameter = |index: usize| parameters.get_item(index)?.extract::<f64>();
    Ok(match parameters.len() {
        0 => Finish::Standard,
        1 => Finish::Scaled { scale: parameter(0)? },
        _ => Finish::Affine { location: parameter(0)?, scale: parameter(1)? },
    })
}

fn exponential_of(finish: Finish) -> Finish {
    match finish {
        Finish::Affine { location, scale } => Finish::LogAffine { location, scale },
        Finish::Standard | Finish::Scaled { .. } | Finish::LogAffine { .. } => finish,
    }
}

/// The lowest value in two's complement, and the highest minus the lowest (at least 1). No parameters: booleans.
fn integers(parameters: &Bound<'_, PyTuple>, bytes: usize, bounding: Bounding) -> PyResult<Draw> {
    if parameters.is_empty() {
        return Ok(Draw::Booleans);
    }
    let low = parameters.get_item(0)?.extract()?;
    let range = parameters.get_item(1)?.extract()?;
    Ok(Draw::Integers { bytes, low, range, bounding })
}

/// Where NumPy keeps a state.
struct Holder<'a, 'py> {
    bit_generator: &'a Bound<'py, PyAny>,
    legacy: Option<&'a Bound<'py, PyAny>>,
}

impl<'py> Holder<'_, 'py> {
    /// The state as NumPy tells it: a fresh dictionary.
    fn read(&self) -> PyResult<Bound<'py, PyDict>> {
        let told = match self.legacy {
            Some(legacy) => legacy.call_method1("get_state", (false,))?,
            None => self.bit_generator.getattr("state")?,
        };
        Ok(told.cast_into::<PyDict>()?)
    }

    /// Hands `state` to NumPy, in the dictionary that it told.
    fn write(&self, told: Bound<'py, PyDict>, state: &State) -> PyResult<()> {
        note_state(&told, state)?;
        match self.legacy {
            Some(legacy) => legacy.call_method1("set_state", (told,)).map(drop),
            None => self.bit_generator.setattr("state", told),
        }
    }
}

/// An entry of a dictionary that NumPy made.
fn entry<'py>(told: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    told.get_item(name)
}

/// The 64-bit words of an array.
fn words<const N: usize>(array: &Bound<'_, PyAny>) -> PyResult<[u64; N]> {
    let bytes = array.call_method0("tobytes")?;
    let bytes = bytes.cast::<PyBytes>()?.as_bytes();
    let mut words = [0; N];
    for (word, eight) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_ne_bytes(*eight);
    }
    Ok(words)
}

/// The state in a dictionary of NumPy's.
fn state_of(told: &Bound<'_, PyDict>) -> PyResult<State> {
    let told = told.as_any();
    let inner = entry(told, "state")?;
    let name: String = entry(told, "bit_generator")?.extract()?;
    let pcg64 = |permutation| -> PyResult<Engine> {
        let state = entry(&inner, "state")?.extract()?;
        Ok(Engine::Pcg64(Pcg64 { state, increment: entry(&inner, "inc")?.extract()?, permutation }))
    };
    let engine = match name.as_str() {
        "PCG64" => pcg64(Permutation::XslRr)?,
        "PCG64DXSM" => pcg64(Permutation::Dxsm)?,
        "Philox" => Engine::Philox(Philox {
            counter: words(&entry(&inner, "counter")?)?,
            key: words(&entry(&inner, "key")?)?,
            buffer: words(&entry(told, "buffer")?)?,
            used: entry(told, "buffer_pos")?.extract()?,
        }),
        "SFC64" => Engine::Sfc64(Sfc64(words(&entry(&inner, "state")?)?)),
        "MT19937" => {
            let halves: [u64; MT19937_WORDS / 2] = words(&entry(&inner, "key")?)?;
            let mut key = [0; MT19937_WORDS];
            for (pair, half) in key.as_chunks_mut::<2>().0.iter_mut().zip(halves) {
                *pair = [half as u32, (half >> 32) as u32];
            }
            Engine::Mt19937(Box::new(Mt19937 { key, used: entry(&inner, "pos")?.extract()? }))
        }
        _ => return Err(unknown("draw from the bit generator", &name)),
    };
    let spare_half = match engine {
        Engine::Mt19937(_) => SpareHalf::default(),
        Engine::Pcg64(_) | Engine::Philox(_) | Engine::Sfc64(_) => SpareHalf {
            waiting: entry(told, "has_uint32")?.extract::<i64>()? != 0,
            value: entry(told, "uinteger")?.extract()?,
        },
    };
    let has_normal = told.contains("has_gauss")? && entry(told, "has_gauss")?.extract::<i64>()? != 0;
    let spare_normal = if has_normal { Some(entry(told, "gauss")?.extract()?) } else { None };
    Ok(State { engine, spare_half, spare_normal })
}

/// Changes a dictionary of NumPy's to tell `state`.
fn note_state(told: &Bound<'_, PyDict>, state: &State) -> PyResult<()> {
    let py = told.py();
    let array =
        |bytes: Vec<u8>, letter: &str| shim(py)?.host(py, "frombuffer")?.call1((PyBytes::new(py, &bytes), letter));
    let words = |words: &[u64]| array(words.iter().flat_map(|word| word.to_ne_bytes()).collect(), "u8");
    let inner = entry(told.as_any(), "state")?;
    match &state.engine {
        Engine::Pcg64(generator) => {
            inner.set_item("state", generator.state)?;
            inner.set_item("inc", generator.increment)?;
        }
        Engine::Philox(generator) => {
            inner.set_item("counter", words(&generator.counter)?)?;
            told.set_item("buffer", words(&generator.buffer)?)?;
            told.set_item("buffer_pos", generator.used)?;
        }
        Engine::Sfc64(generator) => inner.set_item("state", words(&generator.0)?)?,
        Engine::Mt19937(generator) => {
            inner.set_item("key", array(generator.key.iter().flat_map(|word| word.to_ne_bytes()).collect(), "u4")?)?;
            inner.set_item("pos", generator.used)?;
        }
    }
    if told.contains("has_uint32")? {
        told.set_item("has_uint32", u8::from(state.spare_half.waiting))?;
        told.set_item("uinteger", state.spare_half.value)?;
    }
    if told.contains("has_gauss")? {
        told.set_item("has_gauss", u8::from(state.spare_normal.is_some()))?;
        told.set_item("gauss", state.spare_normal.unwrap_or(0.0))?;
    }
    Ok(())
}

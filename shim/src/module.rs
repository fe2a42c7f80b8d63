//! What Python sees in `legate._core`: configuration, the array class, hand-over between host and deferred arrays.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::array::{DeferredArray, deferred};
use crate::future::{Future, future, settled};
use crate::host;
use crate::numpy_api;
use crate::ops::{batches, bins, create, mask, rows, sort, strips};
use crate::report::Row;
use crate::settings::Settings;
use crate::state::{self, shim};
use crate::storage::{Export, Storage};

/// Sets what the runtime starts with; what is not said comes from the environment. Raises RuntimeError when it runs already.
#[pyfunction]
#[pyo3(signature = (*, cpus=None, sysmem=None, min_chunk=None, fusion=None, processors=None, window=None, run_ahead=None, blocks=None, report=None, show_plan=None, profile=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of one function")]
fn configure(
    py: Python<'_>,
    cpus: Option<usize>,
    sysmem: Option<usize>,
    min_chunk: Option<usize>,
    fusion: Option<bool>,
    processors: Option<usize>,
    window: Option<usize>,
    run_ahead: Option<usize>,
    blocks: Option<bool>,
    report: Option<bool>,
    show_plan: Option<bool>,
    profile: Option<bool>,
) -> PyResult<()> {
    let known = Settings::from_environment();
    let cpus_given = cpus.map(|cpus| cpus.max(1));
    state::configure(
        py,
        Settings {
            cpus: cpus_given.unwrap_or(known.cpus),
            processors: processors.or(cpus_given).unwrap_or(known.processors).max(1),
            sysmem: sysmem.unwrap_or(known.sysmem),
            min_chunk: min_chunk.unwrap_or(known.min_chunk).max(1),
            window: window.unwrap_or(known.window).max(1),
            run_ahead: run_ahead.unwrap_or(known.run_ahead),
            fusion: fusion.unwrap_or(known.fusion),
            blocks: blocks.unwrap_or(known.blocks),
            report: report.unwrap_or(known.report),
            show_plan: show_plan.unwrap_or(known.show_plan),
            profile: profile.unwrap_or(known.profile),
        },
    )
}

/// The settings in force.
#[pyfunction]
fn settings(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let shim = shim(py)?;
    let settings = PyDict::new(py);
    for (name, value) in shim.settings.pairs(shim.runtime.mapper()) {
        settings.set_item(name, value)?;
    }
    Ok(settings)
}

/// Whether an object is a deferred array.
#[pyfunction]
fn is_deferred(object: &Bound<'_, PyAny>) -> bool {
    deferred(object).is_some()
}

/// Whether an array of this shape (a tuple of lengths) and dtype would be deferred.
#[pyfunction]
fn eligible(shape: &Bound<'_, PyTuple>, dtype: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = shape.py();
    let shim = shim(py)?;
    let mut size = 1usize;
    for length in shape.iter_borrowed() {
        size = size.saturating_mul(length.extract()?);
    }
    let descr = shim.host(py, "dtype")?.call1((dtype,))?;
    host::is_eligible(shim, shape.len(), size, &descr)
}

/// Hands a fresh host array over without a copy, when it is eligible and nobody else holds it; else returns it.
#[pyfunction]
fn adopt<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if !numpy_api::is_exact_array(array) {
        return Ok(array.clone());
    }
    host::adopt_argument(shim(array.py())?, array.clone())
}

/// Whether an object is a future.
#[pyfunction]
fn is_future(object: &Bound<'_, PyAny>) -> bool {
    future(object).is_some()
}

/// Whether an object is a future that the program has not waited for.
#[pyfunction]
fn is_pending(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let shim = shim(object.py())?;
    Ok(future(object).is_some_and(|future| !future.get().is_known(shim)))
}

/// A pinned host array over the memory of a deferred array, the scalar of a future; anything else is returned as it is.
#[pyfunction(name = "host")]
fn to_host<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match deferred(object) {
        Some(array) => array.get().export(object.py()),
        None => settled(object),
    }
}

/// The class of the futures of a dtype, given its letter.
#[pyfunction]
fn future_class<'py>(py: Python<'py>, letter: char) -> PyResult<Bound<'py, PyType>> {
    crate::future::class(py, shim(py)?, letter as u8)
}

/// The NumPy scalar of a future; anything else is returned as it is.
#[pyfunction]
fn scalar<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    settled(object)
}

/// Sets the metaclass of the classes of futures (a subclass of `type` without storage of its own).
#[pyfunction]
fn set_future_kind(kind: &Bound<'_, PyAny>) {
    crate::future::set_kind(kind);
}

/// Runs a host function with every deferred argument replaced by an alias, and its results deferred where eligible.
#[pyfunction]
#[pyo3(signature = (function, args, kwargs=None, label="host"))]
fn host_call<'py>(
    function: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    label: &str,
) -> PyResult<Bound<'py, PyAny>> {
    host::call(function, args, kwargs, label)
}

/// Runs a function of NumPy that only looks at shapes, strides and dtypes, and returns views: nothing waits.
#[pyfunction]
#[pyo3(signature = (function, args, kwargs=None))]
fn view_call<'py>(
    function: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    host::view_call(function, args, kwargs)
}

/// Waits for everything that was issued.
#[pyfunction]
fn flush(py: Python<'_>) -> PyResult<()> {
    shim(py)?.flush(py)
}

/// The counts for `--report`: (file, line, operation, how, calls, bytes gathered, seconds).
#[pyfunction]
fn report_rows(py: Python<'_>) -> PyResult<Vec<Row>> {
    Ok(shim(py)?.report.lock().rows())
}

/// Counts a call that the Python side answered with rebound code.
#[pyfunction]
fn note_rebound(py: Python<'_>, operation: &str) -> PyResult<()> {
    let shim = shim(py)?;
    if shim.settings.report {
        shim.report.lock().note(py, operation, crate::report::How::Rebound, 0, 0.0);
    }
    Ok(())
}

/// The groups run so far, as text (empty unless `show_plan` was set).
#[pyfunction]
fn plan_text(py: Python<'_>) -> PyResult<String> {
    let shim = shim(py)?;
    shim.flush(py)?;
    Ok(shim.runtime.plan_text())
}

/// Begins to record launches as text; those recorded since the last call.
#[pyfunction]
fn record_launches(py: Python<'_>) -> PyResult<String> {
    let shim = shim(py)?;
    shim.flush(py)?;
    Ok(shim.runtime.record_launches())
}

/// A group that has run: names of its launches, rows, start and length in microseconds, messages sent meanwhile and their bytes.
type Span = (Vec<String>, usize, u64, u64, u64, u64);

/// When each group of operations ran, where that is kept: microseconds since 1970 when that began, and the groups.
#[pyfunction]
fn times(py: Python<'_>) -> PyResult<(u64, Vec<Span>)> {
    let shim = shim(py)?;
    shim.flush(py)?;
    let (began, spans) = shim.runtime.times();
    let rows = spans.into_iter().map(|span| {
        (
            span.names.iter().map(ToString::to_string).collect(),
            span.rows,
            span.start_us,
            span.length_us,
            span.messages,
            span.bytes,
        )
    });
    Ok((began, rows.collect()))
}

/// Exact counts: groups, launches and tiles run, fields never stored, bytes of memory touched, blocks mapped afresh.
#[pyfunction]
fn counters(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    use std::sync::atomic::Ordering::Relaxed;
    let shim = shim(py)?;
    shim.flush(py)?;
    let counters = shim.runtime.counters();
    let result = PyDict::new(py);
    result.set_item("groups", counters.groups.load(Relaxed))?;
    result.set_item("launches", counters.launches.load(Relaxed))?;
    result.set_item("tiles", counters.tiles.load(Relaxed))?;
    result.set_item("in_blocks", counters.in_blocks.load(Relaxed))?;
    result.set_item("joined_sweeps", counters.joined_sweeps.load(Relaxed))?;
    result.set_item("unstored", counters.unstored.load(Relaxed))?;
    result.set_item("read_bytes", counters.read_bytes.load(Relaxed))?;
    result.set_item("written_bytes", counters.written_bytes.load(Relaxed))?;
    let traffic = shim.runtime.traffic();
    result.set_item("messages", traffic.messages.load(Relaxed))?;
    result.set_item("message_bytes", traffic.bytes.load(Relaxed))?;
    result.set_item("agreements", traffic.agreements.load(Relaxed))?;
    result.set_item("hops", traffic.hops.load(Relaxed))?;
    result.set_item("fresh_blocks", shim.runtime.pool().fresh_blocks())?;
    Ok(result)
}

/// Before a fork: waits for everything, and holds the runtime still until `after_fork` or `forked`.
#[pyfunction]
fn before_fork(py: Python<'_>) -> PyResult<()> {
    let shim = shim(py)?;
    shim.flush(py)?;
    shim.runtime.before_fork();
    Ok(())
}

/// After a fork, in the parent.
#[pyfunction]
fn after_fork(py: Python<'_>) -> PyResult<()> {
    shim(py)?.runtime.after_fork();
    Ok(())
}

/// In a forked child: goes on without threads.
#[pyfunction]
fn forked(py: Python<'_>) -> PyResult<()> {
    shim(py)?.runtime.forked();
    Ok(())
}

/// Gives the array class a metaclass (a subclass of `type` without storage of its own), and NumPy's text.
#[pyfunction]
fn set_metaclass(metaclass: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = metaclass.py();
    let class = py.get_type::<DeferredArray>();
    class.setattr("__doc__", py.import("numpy")?.getattr("ndarray")?.getattr("__doc__")?)?;
    numpy_api::set_metaclass(class.as_any(), metaclass);
    Ok(())
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    crate::blas::prepare_environment();
    module.add_class::<DeferredArray>()?;
    module.add_class::<Future>()?;
    module.add_class::<Storage>()?;
    module.add_class::<Export>()?;
    for function in [
        wrap_pyfunction!(configure, module)?,
        wrap_pyfunction!(settings, module)?,
        wrap_pyfunction!(is_deferred, module)?,
        wrap_pyfunction!(is_future, module)?,
        wrap_pyfunction!(is_pending, module)?,
        wrap_pyfunction!(set_future_kind, module)?,
        wrap_pyfunction!(future_class, module)?,
        wrap_pyfunction!(scalar, module)?,
        wrap_pyfunction!(eligible, module)?,
        wrap_pyfunction!(adopt, module)?,
        wrap_pyfunction!(to_host, module)?,
        wrap_pyfunction!(host_call, module)?,
        wrap_pyfunction!(view_call, module)?,
        wrap_pyfunction!(flush, module)?,
        wrap_pyfunction!(report_rows, module)?,
        wrap_pyfunction!(note_rebound, module)?,
        wrap_pyfunction!(plan_text, module)?,
        wrap_pyfunction!(record_launches, module)?,
        wrap_pyfunction!(counters, module)?,
        wrap_pyfunction!(times, module)?,
        wrap_pyfunction!(crate::freeze::freeze_crashes, module)?,
        wrap_pyfunction!(before_fork, module)?,
        wrap_pyfunction!(after_fork, module)?,
        wrap_pyfunction!(forked, module)?,
        wrap_pyfunction!(set_metaclass, module)?,
        wrap_pyfunction!(batches::in_parts, module)?,
        wrap_pyfunction!(bins::binned, module)?,
        wrap_pyfunction!(bins::searched, module)?,
        wrap_pyfunction!(bins::tallied, module)?,
        wrap_pyfunction!(mask::positions, module)?,
        wrap_pyfunction!(rows::check_indices, module)?,
        wrap_pyfunction!(rows::taken, module)?,
        wrap_pyfunction!(rows::put, module)?,
        wrap_pyfunction!(sort::select, module)?,
        wrap_pyfunction!(strips::fresh, module)?,
        wrap_pyfunction!(strips::own_rows, module)?,
        wrap_pyfunction!(create::zeros, module)?,
        wrap_pyfunction!(create::empty, module)?,
        wrap_pyfunction!(create::ones, module)?,
        wrap_pyfunction!(create::full, module)?,
        wrap_pyfunction!(create::arange, module)?,
    ] {
        module.add_function(function)?;
    }
    crate::ops::parts::register(module)?;
    crate::ops::fourier::register(module)?;
    crate::ops::random::register(module)?;
    crate::shards::register(module)?;
    crate::prompt::register(module)?;
    module.add("__doc__", "The deferred array and the runtime behind it.")?;
    module.add("array_function_table", state::array_functions(py))?;
    module.add("method_table", state::methods(py))?;
    module.add("functions_at_once", state::functions_at_once(py))?;
    module.add("MIDDLING_CHUNKS", state::MIDDLING_CHUNKS)?;
    crate::rounds::register(module)?;
    crate::future::exact::register(module)?;
    crate::ops::mean::register(module)?;
    crate::intercept::register(module)
}

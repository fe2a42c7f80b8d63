//! The layers of the ziggurats, as NumPy has them.
//!
//! For a density f falling from f(0) = 1, the 256 layers have equal area v, the last one with the tail beyond r:
//! `x[255] = r`, `x[i] = f^-1(v / x[i + 1] + f(x[i + 1]))`, and with m multiples across a layer `width = x / m`,
//! `inside = m * x[i - 1] / x[i]`, `density = f(x)` (layer 0: `x = v / f(r)`, `inside = m * r / x`). The recursion
//! amplifies rounding, and NumPy's last digits are those of the machine where its tables were made: they cannot be
//! recomputed, so the numbers themselves are kept, in `ziggurat_tables.txt`.

/// One ziggurat: 256 layers.
pub(super) struct Ziggurat<K, X> {
    /// Multiples below this are accepted at once.
    pub(super) inside: [K; 256],
    /// Width of a layer divided by the number of multiples.
    pub(super) width: [X; 256],
    /// Density at the layer's edge.
    pub(super) density: [X; 256],
}

/// Normal, doubles: multiples of 52 bits.
pub(super) static NORMAL_F64: Ziggurat<u64, f64> = double(0);
/// Normal, singles: multiples of 23 bits.
pub(super) static NORMAL_F32: Ziggurat<u32, f32> = single(3);
/// Exponential, doubles: multiples of 53 bits.
pub(super) static EXPONENTIAL_F64: Ziggurat<u64, f64> = double(6);
/// Exponential, singles: multiples of 23 bits.
pub(super) static EXPONENTIAL_F32: Ziggurat<u32, f32> = single(9);

const TEXT: &[u8] = include_bytes!("ziggurat_tables.txt");
const COLUMNS: usize = 12;

/// The rows of the text: hexadecimal numbers between spaces, after comment lines.
const fn numbers() -> [[u64; COLUMNS]; 256] {
    let mut rows = [[0; COLUMNS]; 256];
    let mut row = 0;
    let mut column = 0;
    let mut at = 0;
    while at < TEXT.len() {
        if TEXT[at] == b'#' {
            while TEXT[at] != b'\n' {
                at += 1;
            }
            at += 1;
            continue;
        }
        match TEXT[at] {
            b' ' => column += 1,
            b'\n' => {
                assert!(column == COLUMNS - 1);
                row += 1;
                column = 0;
            }
            digit @ b'0'..=b'9' => rows[row][column] = rows[row][column] << 4 | (digit - b'0') as u64,
            digit => rows[row][column] = rows[row][column] << 4 | (digit - b'a' + 10) as u64,
        }
        at += 1;
    }
    assert!(row == 256);
    rows
}

const fn double(column: usize) -> Ziggurat<u64, f64> {
    let rows = numbers();
    let mut table = Ziggurat { inside: [0; 256], width: [0.0; 256], density: [0.0; 256] };
    let mut layer = 0;
    while layer < 256 {
        table.inside[layer] = rows[layer][column];
        table.width[layer] = f64::from_bits(rows[layer][column + 1]);
        table.density[layer] = f64::from_bits(rows[layer][column + 2]);
        layer += 1;
    }
    table
}

const fn single(column: usize) -> Ziggurat<u32, f32> {
    let rows = numbers();
    let mut table = Ziggurat { inside: [0; 256], width: [0.0; 256], density: [0.0; 256] };
    let mut layer = 0;
    while layer < 256 {
        table.inside[layer] = rows[layer][column] as u32;
        table.width[layer] = f32::from_bits(rows[layer][column + 1] as u32);
        table.density[layer] = f32::from_bits(rows[layer][column + 2] as u32);
        layer += 1;
    }
    table
}

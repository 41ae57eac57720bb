//! What can be wrong with an input, with the numbers a caller needs to put it right.

use crate::simd::Level;
use std::io::ErrorKind;

/// The result of every fallible call of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call was refused. Nothing has been written when a call returns one.
///
/// Where several inputs are bad, the one at the lowest position is named, whatever the number of threads.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An array's shape is not the one that the operator needs.
    #[error("{argument} has shape {found:?}, expected {expected:?}")]
    Shape {
        /// The argument's name.
        argument: &'static str,
        /// The shape that was passed.
        found: Vec<usize>,
        /// The shape that is needed.
        expected: Vec<usize>,
    },
    /// An array has too few axes to be read as the operator needs.
    #[error("{argument} has {found} axes, expected at least {least}")]
    Rank {
        /// The argument's name.
        argument: &'static str,
        /// The number of axes that was passed.
        found: usize,
        /// The least number of axes.
        least: usize,
    },
    /// An index points at no row.
    #[error("{argument}{position:?} = {value} is outside 0..{bound}")]
    IndexOutOfRange {
        /// The argument's name.
        argument: &'static str,
        /// The position of the index in its array, one number an axis.
        position: Vec<usize>,
        /// The index.
        value: i128,
        /// The number of rows it must be below.
        bound: usize,
    },
    /// An offset does not lie between the one before it and the number of entries (the first is 0, the last that number),
    /// or a length is not among those that leave the sum of all at that number.
    #[error("{argument}[{position}] = {value}, expected {least} to {most}")]
    Offset {
        /// The argument's name.
        argument: &'static str,
        /// Its position.
        position: usize,
        /// Its value.
        value: i128,
        /// The least value that could stand there.
        least: usize,
        /// The largest value that could stand there.
        most: usize,
    },
    /// A coordinate is infinite or not a number.
    #[error("{argument}{position:?} = {value} is not finite")]
    NonFinite {
        /// The argument's name.
        argument: &'static str,
        /// The position of the coordinate in its array.
        position: Vec<usize>,
        /// The coordinate.
        value: String,
    },
    /// A radius or a bound on distances is negative or not a number.
    #[error("{argument}{} = {value}, expected a distance of at least 0", brackets(*position))]
    Distance {
        /// The argument's name.
        argument: &'static str,
        /// Its position where there is one a query.
        position: Option<usize>,
        /// Its value.
        value: String,
    },
    /// The length of a periodic box is not finite and greater than 0.
    #[error("{argument}[{axis}] = {value}, expected a length that is finite and greater than 0")]
    Length {
        /// The argument's name.
        argument: &'static str,
        /// The axis.
        axis: usize,
        /// The length.
        value: String,
    },
    /// A number that tells an operator what to compute is not among those that mean something.
    #[error("{argument} = {value}, expected a number that is finite and {expected}")]
    Parameter {
        /// The argument's name.
        argument: &'static str,
        /// Its value.
        value: String,
        /// What it must be besides finite.
        expected: &'static str,
    },
    /// The numbers that describe a kernel describe none.
    #[error("{argument}{} = {value}, expected {expected}", pixel(position))]
    KernelShape {
        /// The argument's name.
        argument: &'static str,
        /// The kernel's position: an index an axis of those that count kernels.
        position: Vec<usize>,
        /// The kernel's numbers.
        value: String,
        /// What they must be.
        expected: &'static str,
    },
    /// The direction of a ray is zero.
    #[error("{argument}[{ray}] is zero, expected a direction")]
    Direction {
        /// The argument's name.
        argument: &'static str,
        /// The ray.
        ray: usize,
    },
    /// A box is not one of the grid: it ends before it starts, or outside.
    #[error("the box from {lo:?} to {hi:?} is none of a grid of shape {shape:?}")]
    Box {
        /// The first cell.
        lo: Vec<usize>,
        /// Behind the last cell.
        hi: Vec<usize>,
        /// The grid's shape.
        shape: Vec<usize>,
    },
    /// A result of finite inputs is beyond the floating-point numbers.
    #[error("{result}[{first_k}] overflows: a result of finite numbers is beyond the floating-point numbers")]
    Overflow {
        /// The result's name.
        result: &'static str,
        /// The first matrix of its sequence, in any member of a batch, with an entry that is not finite.
        first_k: usize,
    },
    /// The number of dimensions is not supported.
    #[error("{found} dimensions are not supported, 1 to {most} are")]
    Dimensions {
        /// The number of dimensions asked for.
        found: usize,
        /// The largest number.
        most: usize,
    },
    /// A size or a product of sizes does not fit.
    #[error("{argument} = {value} is too large, at most {limit} is supported")]
    TooLarge {
        /// What is too large.
        argument: &'static str,
        /// Its value.
        value: u128,
        /// The largest supported value.
        limit: u128,
    },
    /// The memory for an output or for scratch could not be had.
    #[error("{bytes} bytes could not be allocated")]
    Allocation {
        /// The number of bytes asked for.
        bytes: usize,
    },
    /// The CPU lacks the instructions of a level.
    #[error("level {level} is not available here, the highest is {highest}")]
    LevelUnavailable {
        /// The level asked for.
        level: Level,
        /// The highest level of this CPU.
        highest: Level,
    },
    /// A scan with these weights has no such method.
    #[error("method {method} is not available for weights {weights}, {accepted} have it")]
    MethodUnavailable {
        /// The method asked for.
        method: &'static str,
        /// The scan's weights.
        weights: &'static str,
        /// Those for which it is available.
        accepted: &'static str,
    },
    /// An environment variable holds a word that means nothing.
    #[error("{variable}={value} is not understood, accepted are {accepted}")]
    Environment {
        /// The variable's name.
        variable: &'static str,
        /// Its value.
        value: String,
        /// The accepted words.
        accepted: &'static str,
    },
    /// The operating system could not do what a file needs.
    #[error("{name}: {message}")]
    Io {
        /// The file's path, or the argument that was read from or written to.
        name: String,
        /// The kind of failure.
        kind: ErrorKind,
        /// What the operating system says.
        message: String,
    },
    /// A file does not hold what is to be loaded from it.
    #[error("{name}: {fault}")]
    File {
        /// The file's path, or the argument that was read from.
        name: String,
        /// What is wrong with it.
        fault: FileFault,
    },
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FileFault {
    /// It is something else.
    #[error("not a k-d tree of pullback")]
    NotATree,
    /// It is something else.
    #[error("not an occupancy pyramid of pullback")]
    NotAPyramid,
    /// It was written by another version of this crate.
    #[error("version {found} of the format, this build reads version {supported}")]
    Version {
        /// The file's version.
        found: u32,
        /// The version that can be read.
        supported: u32,
    },
    /// Its elements are of another type.
    #[error("elements are {found}, expected {expected}")]
    Element {
        /// The file's type.
        found: &'static str,
        /// The type asked for.
        expected: &'static str,
    },
    /// Its points have another number of dimensions.
    #[error("{found} dimensions, expected {expected}")]
    Dimensions {
        /// The file's number.
        found: usize,
        /// The number asked for.
        expected: usize,
    },
    /// Its end is missing.
    #[error("truncated: {found} bytes of {expected}")]
    Truncated {
        /// How many bytes there are.
        found: u64,
        /// How many bytes there must be, at least where the file ends too early to say.
        expected: u64,
    },
    /// Something follows its end.
    #[error("more than its {expected} bytes")]
    Trailing {
        /// How many bytes there must be.
        expected: u64,
    },
    /// A part of it is not what was written.
    #[error("damaged: the checksum of its {section} does not match")]
    Checksum {
        /// The part.
        section: &'static str,
    },
    /// Its parts are as they were written, but they do not fit together.
    #[error("not valid: {what}")]
    Structure {
        /// What is wrong.
        what: String,
    },
    /// It was changed after it had been mapped.
    #[error("changed while it was mapped")]
    Changed,
}

/// A position as an index is written.
fn brackets(position: Option<usize>) -> String {
    position.map_or_else(String::new, |position| format!("[{position}]"))
}

/// The position of a kernel as an index is written; a kernel alone has none.
fn pixel(position: &[usize]) -> String {
    if position.is_empty() { String::new() } else { format!("{position:?}") }
}

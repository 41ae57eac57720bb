//! Arrays of any strides.

use ndarray::{Array, ArrayBase, ArrayView, ArrayViewMut, Axis, Dimension, RawData, Slice};

/// How the axes of an array lie in memory. The default is standard layout; bit `a` of a field speaks of axis `a`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Strides {
    /// The number of a permutation of the axes, 0 the identity.
    pub order: usize,
    /// Axes that run backwards.
    pub reversed: u8,
    /// Axes that take every second element of a longer array.
    pub halved: u8,
    /// Axes all along which one element stands, with stride 0: inputs only.
    pub broadcast: u8,
}

impl Strides {
    /// Without what no output can have.
    pub fn of_an_output(self) -> Self {
        Self { broadcast: 0, ..self }
    }

    /// The axis of memory that each axis of the array is.
    fn permutation(&self, axes: usize) -> Vec<usize> {
        let (mut left, mut code): (Vec<usize>, _) = ((0..axes).collect(), self.order);
        std::iter::from_fn(|| {
            let at = code.checked_rem(left.len())?;
            code /= left.len();
            Some(left.remove(at))
        })
        .collect()
    }
}

fn has(axes: u8, axis: usize) -> bool {
    axes >> axis & 1 == 1
}

/// Memory, and the strides of the array in it. What lies between the array's elements is memory too.
#[derive(Clone)]
pub struct Strided<T, D> {
    memory: Array<T, D>,
    strides: Strides,
    /// The shape of the memory as if no axis were broadcast.
    extent: D,
}

impl<T: Clone, D: Dimension> Strided<T, D> {
    /// An array of `shape` with memory filled by `value`.
    pub fn new(shape: D, strides: Strides, value: impl FnMut() -> T) -> Self {
        let (mut extent, mut stored) = (shape.clone(), shape.clone());
        for (axis, at) in strides.permutation(shape.ndim()).into_iter().enumerate() {
            extent[at] = if has(strides.halved, axis) { 2 * shape[axis] + 1 } else { shape[axis] };
            stored[at] = if has(strides.broadcast, axis) { 1 } else { extent[at] };
        }
        Self { memory: Array::from_shape_simple_fn(stored, value), strides, extent }
    }

    /// A copy in standard layout.
    pub fn standard(array: ArrayView<'_, T, D>) -> Self {
        let mut cells = array.iter().cloned();
        Self::new(array.raw_dim(), Strides::default(), || cells.next().expect("as many"))
    }

    pub fn view(&self) -> ArrayView<'_, T, D> {
        let memory = self.memory.broadcast(self.extent.clone()).expect("axes of length 1 are broadcast");
        through(self.strides, memory)
    }

    pub fn view_mut(&mut self) -> ArrayViewMut<'_, T, D> {
        assert_eq!(self.strides.broadcast, 0, "outputs are not broadcast");
        through(self.strides, self.memory.view_mut())
    }

    /// The memory with `blank` in every element of the array: what a write to the array alone leaves as it was.
    pub fn outside(&self, blank: T) -> Array<T, D> {
        let mut outside = self.clone();
        outside.view_mut().fill(blank);
        outside.memory
    }
}

fn through<S: RawData, D: Dimension>(strides: Strides, memory: ArrayBase<S, D>) -> ArrayBase<S, D> {
    let mut axes = D::zeros(memory.ndim());
    axes.slice_mut().copy_from_slice(&strides.permutation(memory.ndim()));
    let mut array = memory.permuted_axes(axes);
    for axis in 0..array.ndim() {
        if has(strides.halved, axis) {
            array.slice_axis_inplace(Axis(axis), Slice::new(1, None, 2));
        }
        if has(strides.reversed, axis) {
            array.invert_axis(Axis(axis));
        }
    }
    array
}

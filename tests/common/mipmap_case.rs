//! A problem for pyramids of bits, from a few small numbers, and its check against dense arrays.

use super::mipmap::{Cell, Fill, assert_pyramid, cells_of, count_in_box, random_box, rows, shape_of};
use super::random::Random;
use super::strides::{Strided, Strides};
use super::threads;
use super::values::Value;
use ndarray::{Array3, Axis, Ix3, Slice, s};
use pullback::bitvec::prelude::{BitVec, Lsb0};
use pullback::mipmap::{Occupancy, Pyramid, PyramidBuilder, Tuning, Voxel, full_levels};
use pullback::{Level, Result};

/// What a grid is made from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Input {
    F32,
    F64,
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    Bits,
}

impl Input {
    pub const ALL: [Self; 12] = [
        Self::F32,
        Self::F64,
        Self::Bool,
        Self::U8,
        Self::I8,
        Self::U16,
        Self::I16,
        Self::U32,
        Self::I32,
        Self::U64,
        Self::I64,
        Self::Bits,
    ];
}

/// A problem. The data follow from `seed`.
#[derive(Clone, Debug)]
pub struct MipmapCase {
    pub shape: Cell,
    pub fill: Fill,
    pub input: Input,
    pub slabs: bool,
    /// Every level, or that many of them (as far as there are).
    pub levels: Option<usize>,
    pub tuning: Tuning,
    pub strides: Strides,
    /// How many changes follow.
    pub changes: usize,
    pub threads: usize,
    pub seed: u64,
}

impl Default for MipmapCase {
    /// 9 x 5 x 70 voxels in f32, half of them occupied.
    fn default() -> Self {
        Self {
            shape: [9, 5, 70],
            fill: Fill::Half,
            input: Input::F32,
            slabs: false,
            levels: None,
            tuning: Tuning::default(),
            strides: Strides::default(),
            changes: 4,
            threads: 2,
            seed: 0,
        }
    }
}

/// Takes an array of numbers of one type.
trait Take {
    fn threshold<T: Value>(&mut self, array: &Strided<T, Ix3>, threshold: T);
    fn nonzero<V: Voxel>(&mut self, array: &Strided<V, Ix3>);
    fn bits(&mut self, rows: &BitVec<u64, Lsb0>, skip: usize);
}

fn arranged<A: Copy>(values: &Array3<A>, strides: Strides, blank: A) -> Strided<A, Ix3> {
    let mut strided = Strided::new(values.raw_dim(), strides, || blank);
    strided.view_mut().assign(values);
    strided
}

impl MipmapCase {
    pub fn check(&self, level: Level) {
        threads::with(self.threads, || self.check_here(level));
    }

    fn floats<T: Value>(&self, grid: &Array3<bool>, random: &mut Random, take: &mut impl Take) {
        let any = T::spread(random.bits());
        let threshold = random.one_of(&[T::zero(), T::one(), -T::one(), any, T::infinity()]);
        // Nothing is above infinity.
        let threshold = if threshold.is_infinite() && grid.iter().any(|x| *x) { T::zero() } else { threshold };
        let above = [threshold.up(), threshold + T::one(), T::infinity(), T::infinity()];
        let below = [threshold, threshold.down(), T::neg_infinity(), T::nan(), T::SPECIAL[0], T::SPECIAL[1]];
        let values = grid.mapv(|occupied| match occupied {
            true => random.one_of(&above),
            false if threshold == T::zero() && random.below(3) == 0 => -T::zero(),
            false => random.one_of(&below),
        });
        take.threshold(&arranged(&values, self.strides, T::infinity()), threshold);
    }

    fn integers<V: Voxel>(&self, grid: &Array3<bool>, none: V, some: &[V], random: &mut Random, take: &mut impl Take) {
        let values = grid.mapv(|occupied| if occupied { random.one_of(some) } else { none });
        take.nonzero(&arranged(&values, self.strides, some[0]));
    }

    fn packed(grid: &Array3<bool>, random: &mut Random, take: &mut impl Take) {
        let (z, row) = (shape_of(grid)[2], shape_of(grid)[2].div_ceil(64) * 64);
        let mut packed = rows(grid);
        // What stands behind the row does not matter, and neither does where a slice of bits starts.
        for (at, mut bit) in packed.iter_mut().enumerate() {
            if at % row >= z {
                *bit = random.below(2) == 0;
            }
        }
        let skip = random.one_of(&[0, 0, 1, 63, 64]);
        let mut moved: BitVec<u64, Lsb0> = BitVec::repeat(true, skip);
        moved.extend_from_bitslice(&packed);
        take.bits(&moved, skip);
    }

    /// Hands over `grid` as numbers of the type of the input.
    fn give(&self, grid: &Array3<bool>, random: &mut Random, take: &mut impl Take) {
        match self.input {
            Input::F32 => self.floats::<f32>(grid, random, take),
            Input::F64 => self.floats::<f64>(grid, random, take),
            Input::Bool => self.integers(grid, false, &[true], random, take),
            Input::U8 => self.integers(grid, 0u8, &[1, 2, 127, 128, 255], random, take),
            Input::I8 => self.integers(grid, 0i8, &[1, -1, 127, -128], random, take),
            Input::U16 => self.integers(grid, 0u16, &[1, 0xff, 0x100, 0x8000, 0xffff], random, take),
            Input::I16 => self.integers(grid, 0i16, &[1, -1, 0x100, i16::MIN, i16::MAX], random, take),
            Input::U32 => self.integers(grid, 0u32, &[1, 0x100, 0x1_0000, 1 << 31, u32::MAX], random, take),
            Input::I32 => self.integers(grid, 0i32, &[1, -1, 0x100, 0x1_0000, i32::MIN], random, take),
            Input::U64 => self.integers(grid, 0u64, &[1, 1 << 8, 1 << 32, 1 << 63, u64::MAX], random, take),
            Input::I64 => self.integers(grid, 0i64, &[1, -1, 1 << 16, 1 << 32, i64::MIN], random, take),
            Input::Bits => Self::packed(grid, random, take),
        }
    }

    fn builder(&self, level: Level) -> PyramidBuilder {
        let builder = PyramidBuilder::new(self.shape).and_then(|builder| builder.with_level(level));
        let builder = builder.expect("a good shape").with_tuning(self.tuning);
        assert_eq!(builder.simd_level(), level);
        let levels = self.levels.map(|levels| levels.clamp(1, full_levels(self.shape)));
        match levels {
            Some(levels) => builder.with_levels(levels).expect("there are as many levels"),
            None => builder,
        }
    }

    pub fn pyramid(&self, level: Level, grid: &Array3<bool>, random: &mut Random) -> Pyramid {
        let builder = Some(self.builder(level));
        let mut build = Build { builder, slabs: self.slabs, random: Random::new(random.bits()), built: None };
        self.give(grid, random, &mut build);
        build
            .built
            .expect("an input")
            .expect("a good input")
            .with_level(level)
            .expect("a level")
            .with_tuning(self.tuning)
    }

    fn check_here(&self, level: Level) {
        let mut random = Random::new(self.seed);
        let mut grid = self.fill.grid(self.shape, &mut random);
        let mut pyramid = self.pyramid(level, &grid, &mut random);
        assert_pyramid(&pyramid, &grid);
        let mut lowest = Lowest { shape: self.shape, built: None };
        self.give(&grid, &mut random, &mut lowest);
        let occupancy = lowest.built.expect("an input").expect("a good input");
        assert_eq!(occupancy.grid().to_array::<bool>().expect("memory"), grid);
        let built = Pyramid::build_to(occupancy, pyramid.levels()).expect("as many levels");
        assert_eq!(built, pyramid);
        for _ in 0..self.changes {
            self.change(&mut pyramid, &mut grid, &mut random);
            let rebuilt = Occupancy::from_bits(&rows(&grid), self.shape).expect("good rows");
            let rebuilt = Pyramid::build_to(rebuilt, pyramid.levels()).expect("as many levels");
            assert_eq!(pyramid, rebuilt, "not what is built anew");
            self.query(&pyramid, &grid, &mut random);
        }
        pyramid.extend_to(full_levels(self.shape)).expect("there are as many levels");
        assert_eq!(pyramid.levels(), full_levels(self.shape));
        assert_pyramid(&pyramid, &grid);
        self.query(&pyramid, &grid, &mut random);
    }

    fn change(&self, pyramid: &mut Pyramid, grid: &mut Array3<bool>, random: &mut Random) {
        let (lo, hi) = random_box(self.shape, random);
        let cell = self.shape.map(|n| random.below(n));
        match random.below(6) {
            0 => {
                pyramid.set(cell).expect("a cell");
                grid[cell] = true;
            }
            1 => {
                pyramid.clear(cell).expect("a cell");
                grid[cell] = false;
            }
            2 => {
                let occupied = random.below(2) == 0;
                pyramid.set_box(lo, hi, occupied).expect("a box");
                cells_of(lo, hi).for_each(|cell| grid[cell] = occupied);
            }
            _ => {
                let shape = [0, 1, 2].map(|axis: usize| hi[axis] - lo[axis]);
                let new = random.one_of(&Fill::ALL).grid(shape, random);
                grid.slice_mut(s![lo[0]..hi[0], lo[1]..hi[1], lo[2]..hi[2]]).assign(&new);
                self.give(&new, random, &mut Update { pyramid, lo, shape });
            }
        }
    }

    fn query(&self, pyramid: &Pyramid, grid: &Array3<bool>, random: &mut Random) {
        for at in 0..8 {
            let (lo, hi) = if at == 0 { ([0; 3], self.shape) } else { random_box(self.shape, random) };
            let cells: usize = (0..3).map(|axis| hi[axis] - lo[axis]).product();
            let count = count_in_box(grid, lo, hi);
            assert_eq!(pyramid.count_in_box(lo, hi), Ok(count), "cells in {lo:?}..{hi:?}");
            assert_eq!(pyramid.any_in_box(lo, hi), Ok(count > 0), "any in {lo:?}..{hi:?}");
            assert_eq!(pyramid.all_in_box(lo, hi), Ok(count == cells as u64), "all in {lo:?}..{hi:?}");
        }
    }
}

/// Makes a pyramid by the builder, at once or in slabs of any number of planes.
struct Build {
    builder: Option<PyramidBuilder>,
    slabs: bool,
    random: Random,
    built: Option<Result<Pyramid>>,
}

impl Build {
    /// The planes of each slab.
    fn parts(&mut self, planes: usize) -> Vec<Slice> {
        let (mut parts, mut from) = (vec![], 0);
        while from < planes {
            let to = (from + self.random.below(7)).min(planes);
            parts.push(Slice::from(from..to));
            from = to;
        }
        parts
    }
}

impl Take for Build {
    fn threshold<T: Value>(&mut self, array: &Strided<T, Ix3>, threshold: T) {
        let mut builder = self.builder.take().expect("one input");
        self.built = Some(if self.slabs {
            for part in self.parts(array.view().len_of(Axis(0))) {
                builder.push_slab(array.view().slice_axis(Axis(0), part), threshold).expect("a good slab");
            }
            builder.finish()
        } else {
            builder.threshold(array.view(), threshold)
        });
    }

    fn nonzero<V: Voxel>(&mut self, array: &Strided<V, Ix3>) {
        let mut builder = self.builder.take().expect("one input");
        self.built = Some(if self.slabs {
            for part in self.parts(array.view().len_of(Axis(0))) {
                builder.push_slab_nonzero(array.view().slice_axis(Axis(0), part)).expect("a good slab");
            }
            builder.finish()
        } else {
            builder.nonzero(array.view())
        });
    }

    fn bits(&mut self, rows: &BitVec<u64, Lsb0>, skip: usize) {
        self.built = Some(self.builder.take().expect("one input").bits(&rows[skip..]));
    }
}

/// Makes a grid alone.
struct Lowest {
    shape: Cell,
    built: Option<Result<Occupancy>>,
}

impl Take for Lowest {
    fn threshold<T: Value>(&mut self, array: &Strided<T, Ix3>, threshold: T) {
        self.built = Some(Occupancy::from_threshold(array.view(), threshold));
    }

    fn nonzero<V: Voxel>(&mut self, array: &Strided<V, Ix3>) {
        self.built = Some(Occupancy::from_nonzero(array.view()));
    }

    fn bits(&mut self, rows: &BitVec<u64, Lsb0>, skip: usize) {
        self.built = Some(Occupancy::from_bits(&rows[skip..], self.shape));
    }
}

/// Changes a box.
struct Update<'a> {
    pyramid: &'a mut Pyramid,
    lo: Cell,
    shape: Cell,
}

impl Take for Update<'_> {
    fn threshold<T: Value>(&mut self, array: &Strided<T, Ix3>, threshold: T) {
        self.pyramid.update(self.lo, array.view(), threshold).expect("a good box");
    }

    fn nonzero<V: Voxel>(&mut self, array: &Strided<V, Ix3>) {
        self.pyramid.update_nonzero(self.lo, array.view()).expect("a good box");
    }

    fn bits(&mut self, rows: &BitVec<u64, Lsb0>, skip: usize) {
        self.pyramid.update_bits(self.lo, &rows[skip..], self.shape).expect("a good box");
    }
}

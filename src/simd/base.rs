//! The portable level, on `wide`: whatever the crate is compiled for.
//!
//! `wide` chooses instructions at compile time, which is what this level means. Of `wide` only the correctly rounded
//! arithmetic is used: its own minimum, fused multiply-add and reductions give results that depend on the target.

use super::{Simd, Vector};
use crate::element::Element;
use std::mem::MaybeUninit;
use std::ops::Add;

/// The token of [`Level::Base`](super::Level::Base): always to be had.
#[derive(Clone, Copy)]
pub struct Base(());

impl Base {
    pub fn new() -> Self {
        Self(())
    }
}

impl Simd for Base {
    type V<T: Element> = T::Base;
    const ACCUMULATORS: usize = 2;

    #[inline(always)]
    fn vectorize<R>(self, f: impl FnOnce(Self) -> R) -> R {
        f(self)
    }
}

macro_rules! vector {
    ($name:ident, $t:ty, $half:ty, $lanes:literal) => {
        #[derive(Clone, Copy)]
        pub struct $name([$half; 2]);

        impl $name {
            #[inline(always)]
            fn from_array(x: [$t; $lanes]) -> Self {
                let (low, high) = x.split_at($lanes / 2);
                Self([low, high].map(|half| <$half>::new(half.try_into().expect("half the lanes"))))
            }

            #[inline(always)]
            fn to_array(self) -> [$t; $lanes] {
                bytemuck::cast(self.0.map(<$half>::to_array))
            }
        }

        impl Add for $name {
            type Output = Self;
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                Self([self.0[0] + b.0[0], self.0[1] + b.0[1]])
            }
        }

        impl Vector<$t> for $name {
            type Token = Base;

            #[inline(always)]
            fn splat(_: Base, x: $t) -> Self {
                Self([<$half>::splat(x); 2])
            }
            #[inline(always)]
            fn load(_: Base, x: &[$t]) -> Self {
                Self::from_array(*x.first_chunk().expect("a vector's lanes"))
            }
            #[inline(always)]
            fn load_head(_: Base, x: &[$t]) -> Self {
                let mut lanes = [0.0; $lanes];
                lanes[..x.len()].copy_from_slice(x);
                Self::from_array(lanes)
            }
            #[inline(always)]
            fn store(self, out: &mut [$t]) {
                out[..$lanes].copy_from_slice(&self.to_array());
            }
            #[inline(always)]
            fn store_head(self, out: &mut [$t]) {
                out.copy_from_slice(&self.to_array()[..out.len()]);
            }
            #[inline(always)]
            fn write(self, out: &mut [MaybeUninit<$t>]) {
                out[..$lanes].write_copy_of_slice(&self.to_array());
            }
            #[inline(always)]
            fn write_head(self, out: &mut [MaybeUninit<$t>]) {
                out.write_copy_of_slice(&self.to_array()[..out.len()]);
            }
            #[inline(always)]
            fn stream(self, out: &mut [MaybeUninit<$t>]) {
                super::stream_slice(&self.to_array(), &mut out[..$lanes]);
            }
        }
    };
}
vector!(F32, f32, wide::f32x8, 16);
vector!(F64, f64, wide::f64x4, 8);

//! Bounds and radii: one for all queries or one a query, and which distances they keep.

use super::random::Random;
use super::values::Value;
use ndarray::Array1;
use pullback::kdtree::PerQuery;

#[derive(Clone, Debug)]
pub enum Limits<T> {
    None,
    One(T),
    Each(Array1<T>),
}

impl<T: Value> Limits<T> {
    pub fn of(&self, query: usize) -> T {
        match self {
            Self::None => T::infinity(),
            Self::One(limit) => *limit,
            Self::Each(limits) => limits[query],
        }
    }

    /// A bound is strict, and an infinite one is none: distances that overflow are within it.
    pub fn is_within(&self, query: usize, distance: T) -> bool {
        let bound = self.of(query);
        distance < bound || bound == T::infinity()
    }

    /// A radius is inclusive.
    pub fn reaches(&self, query: usize, distance: T) -> bool {
        distance <= self.of(query)
    }

    /// Drawn from the distances of each query's neighbours, or from those of one query for all.
    pub fn draw(limit: Limit, each: bool, neighbors: &[Vec<T>], random: &mut Random) -> Self {
        if each {
            return Self::Each(neighbors.iter().map(|distances| limit.draw(distances, random)).collect());
        }
        let distances = neighbors.get(random.below(neighbors.len() + 1)).map_or(&[][..], Vec::as_slice);
        Self::One(limit.draw(distances, random))
    }

    /// As a search takes it, where there is one.
    pub fn per_query(&self) -> Option<PerQuery<'_, T>> {
        match self {
            Self::None => None,
            Self::One(limit) => Some(PerQuery::One(*limit)),
            Self::Each(limits) => Some(PerQuery::Each(limits.view())),
        }
    }
}

/// Where limits are drawn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    Infinite,
    Zero,
    Subnormal,
    /// The very distance of a neighbour, or one ulp less or more.
    Distance,
    /// A part of the distance of a neighbour.
    Between,
    /// Any of these.
    Any,
}

impl Limit {
    pub const ALL: [Self; 6] = [Self::Infinite, Self::Zero, Self::Subnormal, Self::Distance, Self::Between, Self::Any];

    /// A limit for a query with neighbours at some distances, in ascending order.
    pub fn draw<T: Value>(self, distances: &[T], random: &mut Random) -> T {
        // More often one of the lesser.
        let rank = random.below(distances.len() + 1);
        let distance = distances.get(random.below(rank + 1)).copied().unwrap_or(T::one());
        match self {
            Self::Infinite => T::infinity(),
            Self::Zero => T::zero(),
            Self::Subnormal => T::subnormal(),
            Self::Distance => random.one_of(&[distance, distance.up(), distance.down().max(T::zero())]),
            Self::Between => distance * T::from_f64(0.7).expect("rounded"),
            Self::Any => {
                let others =
                    [Self::Infinite, Self::Zero, Self::Subnormal, Self::Distance, Self::Distance, Self::Between];
                random.one_of(&others).draw(distances, random)
            }
        }
    }
}

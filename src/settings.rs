//! What can be set of every operator: the level of instructions and, hidden, what is otherwise chosen by size.

/// The methods of an operator that keeps its level and its `Tuning` in these fields. A pyramid has levels of its own, so that
/// the method `level` has another name there.
macro_rules! settings {
    ($name:ident of [$($generics:tt)*] $operator:ty { $($level:ident).+, $($tuning:ident).+ }, same bits from $least:ident) => {
        impl<$($generics)*> $operator {
            /// The level of instructions that the kernels run at.
            #[must_use]
            pub fn $name(&self) -> crate::Level {
                self.$($level).+
            }

            #[doc = concat!(
                "The same at another level. Results are the same bits from [`Level::",
                stringify!($least), "`](crate::Level::", stringify!($least), ") up."
            )]
            ///
            /// # Errors
            ///
            /// [`Error::LevelUnavailable`](crate::Error::LevelUnavailable) where the CPU lacks the level.
            pub fn with_level(mut self, level: crate::Level) -> crate::Result<Self> {
                self.$($level).+ = level.checked()?;
                Ok(self)
            }

            /// The same with choices made by the caller instead of by size.
            #[doc(hidden)]
            #[must_use]
            pub fn with_tuning(mut self, tuning: Tuning) -> Self {
                self.$($tuning).+ = tuning;
                self
            }
        }
    };
}
pub(crate) use settings;

//! Random numbers from a seed: the same seed gives the same run on every machine and in every
//! version. They are not for secrets.

/// A SplitMix64 generator.
#[derive(Debug, Clone)]
pub(crate) struct SeededRandom {
    state: u64,
}

impl SeededRandom {
    /// `purpose` separates sequences, so that the cases of a tool do not depend on other tools.
    pub(crate) fn new(seed: u64, purpose: &str) -> Self {
        // FNV-1a.
        let hash = purpose.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self { state: seed ^ hash }
    }

    pub(crate) fn next_number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`, and 0 if the limit is 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        match u64::try_from(limit) {
            Ok(limit) if limit > 0 => usize::try_from(self.next_number() % limit).unwrap_or_default(),
            _ => 0,
        }
    }

    pub(crate) fn is_heads(&mut self) -> bool {
        self.next_number() & 1 == 1
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::SeededRandom;

    #[test]
    fn a_seed_always_gives_the_same_numbers() {
        let numbers = |seed, purpose| {
            let mut random = SeededRandom::new(seed, purpose);
            [random.next_number(), random.next_number()]
        };
        assert_eq!(numbers(1, ""), numbers(1, ""));
        assert_ne!(numbers(1, ""), numbers(2, ""));
        assert_ne!(numbers(1, "a"), numbers(1, "b"));
        // A change of these numbers would change the runs of all seeds that people wrote down.
        assert_eq!(numbers(7, "echo"), [8_176_190_398_520_603_507, 1_160_775_916_223_051_652]);
    }
}

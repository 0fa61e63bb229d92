//! Which tests run: `--filter` and `--shard`.

use std::fmt;
use std::str::FromStr;

use toolyard_hub::Glob;

use crate::file::{TestCase, TestFile};

/// One `--filter`: a part of the name, a glob, or `tag:NAME`. `!` in front excludes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestFilter {
    pattern: String,
    is_tag: bool,
    excludes: bool,
}

impl TestFilter {
    pub fn parse(text: &str) -> Self {
        let (excludes, text) = match text.strip_prefix('!') {
            Some(text) => (true, text),
            None => (false, text),
        };
        let (is_tag, pattern) = match text.strip_prefix("tag:") {
            Some(tag) => (true, tag),
            None => (false, text),
        };
        Self { pattern: pattern.to_lowercase(), is_tag, excludes }
    }

    fn matches(&self, file: &TestFile, test: &TestCase) -> bool {
        if self.is_tag {
            return file.tags.iter().chain(&test.tags).any(|tag| self.fits(&tag.to_lowercase(), Part::Whole));
        }
        let path = file.path.to_string_lossy().to_lowercase();
        let name = test.name.to_lowercase();
        self.fits(&name, Part::Any) || self.fits(&path, Part::Any)
    }

    fn fits(&self, text: &str, part: Part) -> bool {
        match (self.pattern.contains('*'), part) {
            (true, _) => Glob::from(self.pattern.as_str()).matches(text),
            (false, Part::Any) => text.contains(&self.pattern),
            (false, Part::Whole) => text == self.pattern,
        }
    }
}

#[derive(Clone, Copy)]
enum Part {
    Any,
    Whole,
}

/// Whether a test is selected: by at least one filter that includes, and by none that excludes.
pub(crate) fn is_selected(filters: &[TestFilter], file: &TestFile, test: &TestCase) -> bool {
    let mut including = filters.iter().filter(|filter| !filter.excludes).peekable();
    let is_included = including.peek().is_none() || including.any(|filter| filter.matches(file, test));
    is_included && !filters.iter().any(|filter| filter.excludes && filter.matches(file, test))
}

/// Whether a test that is in no file is selected.
pub(crate) fn is_name_selected(filters: &[TestFilter], name: &str) -> bool {
    let name = name.to_lowercase();
    let fits = |filter: &&TestFilter| !filter.is_tag && filter.fits(&name, Part::Any);
    let mut including = filters.iter().filter(|filter| !filter.excludes).peekable();
    let is_included = including.peek().is_none() || including.any(|filter| fits(&filter));
    is_included && !filters.iter().filter(|filter| filter.excludes).any(|filter| fits(&filter))
}

/// A part of all tests, such as `2/3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Starts at 1.
    index: usize,
    count: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a shard such as 1/3")]
pub struct InvalidShard(String);

impl FromStr for Shard {
    type Err = InvalidShard;

    fn from_str(text: &str) -> Result<Self, InvalidShard> {
        let parsed = text.split_once('/').and_then(|(index, count)| {
            let (index, count) = (index.parse().ok()?, count.parse().ok()?);
            (1 <= index && index <= count && count <= 10_000).then_some(Self { index, count })
        });
        parsed.ok_or_else(|| InvalidShard(text.to_owned()))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl Shard {
    /// Whether the test with this number, starting at 0, belongs to this shard.
    pub(crate) fn contains(self, number: usize) -> bool {
        number % self.count == self.index - 1
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Shard, TestFilter, is_selected};
    use crate::file::parse_test_file;

    #[test]
    fn filters_select_by_name_path_and_tag() {
        let text =
            "tags: all\ntests:\n  - {name: Adds two, call: a, tags: [slow]}\n  - {name: echoes, call: b}\n";
        let file = parse_test_file(Path::new("tests/math.mcp.yaml"), text).unwrap();
        let selected = |filters: &[&str]| -> Vec<&str> {
            let filters: Vec<TestFilter> = filters.iter().map(|text| TestFilter::parse(text)).collect();
            let tests = file.tests.iter().filter(|test| is_selected(&filters, &file, test));
            tests.map(|test| test.name.as_str()).collect()
        };
        assert_eq!(selected(&[]), ["Adds two", "echoes"]);
        assert_eq!(selected(&["adds"]), ["Adds two"]);
        assert_eq!(selected(&["a*o", "echo"]), ["Adds two", "echoes"]);
        assert_eq!(selected(&["math"]), ["Adds two", "echoes"]);
        assert_eq!(selected(&["tag:slow"]), ["Adds two"]);
        assert_eq!(selected(&["tag:all", "!tag:slow"]), ["echoes"]);
        assert_eq!(selected(&["tag:slo"]), Vec::<&str>::new());
        assert_eq!(selected(&["!echo*"]), ["Adds two"]);
    }

    #[test]
    fn shards_are_complete_and_disjoint() {
        let shards: Vec<Shard> = ["1/3", "2/3", "3/3"].iter().map(|text| text.parse().unwrap()).collect();
        for number in 0..10 {
            assert_eq!(shards.iter().filter(|shard| shard.contains(number)).count(), 1);
        }
        for wrong in ["", "1", "0/3", "4/3", "a/b", "1/0", "-1/3"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}

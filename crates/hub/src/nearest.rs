//! The name that was probably meant.

const LONGEST_COMPARED: usize = 256;

/// The nearest of these names, if one is near enough to be meant.
pub fn nearest<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Comparing costs the product of the lengths, for every name: a hostile one of a megabyte has no near one, and a
    // name of quite another length is no slip of the pen.
    if name.len() > LONGEST_COMPARED {
        return None;
    }
    let slack = 3 + name.len() / 4;
    let scored = all
        .filter(|candidate| candidate.len().abs_diff(name.len()) <= slack)
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate));
    let (score, close) = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (score > 0.8).then_some(close)
}

//! The files of the page. Written by `npm run build` in `web`; nothing here is edited by hand.

use super::File;

#[rustfmt::skip]
pub(super) const FILES: [File; 10] = [
    File { path: "/assets/CallRow-BAI57fRq.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallRow-BAI57fRq.js"), gzip: include_bytes!("../../assets/assets/CallRow-BAI57fRq.js.gz") },
    File { path: "/assets/CallsView-BnrTuCbA.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallsView-BnrTuCbA.js"), gzip: include_bytes!("../../assets/assets/CallsView-BnrTuCbA.js.gz") },
    File { path: "/assets/ProgramsView-B3Co5BoN.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ProgramsView-B3Co5BoN.js"), gzip: include_bytes!("../../assets/assets/ProgramsView-B3Co5BoN.js.gz") },
    File { path: "/assets/PromptsView-Dyb9ixf0.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/PromptsView-Dyb9ixf0.js"), gzip: include_bytes!("../../assets/assets/PromptsView-Dyb9ixf0.js.gz") },
    File { path: "/assets/ResourcesView-BDbiJcgo.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ResourcesView-BDbiJcgo.js"), gzip: include_bytes!("../../assets/assets/ResourcesView-BDbiJcgo.js.gz") },
    File { path: "/assets/ServersView-AL_svoqm.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ServersView-AL_svoqm.js"), gzip: include_bytes!("../../assets/assets/ServersView-AL_svoqm.js.gz") },
    File { path: "/assets/index-BsdZwB8C.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/index-BsdZwB8C.js"), gzip: include_bytes!("../../assets/assets/index-BsdZwB8C.js.gz") },
    File { path: "/assets/index-C3yJ79R3.css", kind: "text/css; charset=utf-8", plain: include_bytes!("../../assets/assets/index-C3yJ79R3.css"), gzip: include_bytes!("../../assets/assets/index-C3yJ79R3.css.gz") },
    File { path: "/assets/validate.worker-C-5yPeix.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js"), gzip: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js.gz") },
    File { path: "/", kind: "text/html; charset=utf-8", plain: include_bytes!("../../assets/index.html"), gzip: include_bytes!("../../assets/index.html.gz") },
];

//! The files of the page. Written by `npm run build` in `web`; nothing here is edited by hand.

use super::File;

#[rustfmt::skip]
pub(super) const FILES: [File; 10] = [
    File { path: "/assets/CallRow-BYKNssRk.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallRow-BYKNssRk.js"), gzip: include_bytes!("../../assets/assets/CallRow-BYKNssRk.js.gz") },
    File { path: "/assets/CallsView-BwV8MSpa.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallsView-BwV8MSpa.js"), gzip: include_bytes!("../../assets/assets/CallsView-BwV8MSpa.js.gz") },
    File { path: "/assets/ProgramsView-DroNrz1V.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ProgramsView-DroNrz1V.js"), gzip: include_bytes!("../../assets/assets/ProgramsView-DroNrz1V.js.gz") },
    File { path: "/assets/PromptsView-Bl4gaeR9.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/PromptsView-Bl4gaeR9.js"), gzip: include_bytes!("../../assets/assets/PromptsView-Bl4gaeR9.js.gz") },
    File { path: "/assets/ResourcesView-Bujw7ak9.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ResourcesView-Bujw7ak9.js"), gzip: include_bytes!("../../assets/assets/ResourcesView-Bujw7ak9.js.gz") },
    File { path: "/assets/ServersView-BhzPvxij.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ServersView-BhzPvxij.js"), gzip: include_bytes!("../../assets/assets/ServersView-BhzPvxij.js.gz") },
    File { path: "/assets/index-BI8ddWT0.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/index-BI8ddWT0.js"), gzip: include_bytes!("../../assets/assets/index-BI8ddWT0.js.gz") },
    File { path: "/assets/index-cvwnlj35.css", kind: "text/css; charset=utf-8", plain: include_bytes!("../../assets/assets/index-cvwnlj35.css"), gzip: include_bytes!("../../assets/assets/index-cvwnlj35.css.gz") },
    File { path: "/assets/validate.worker-C-5yPeix.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js"), gzip: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js.gz") },
    File { path: "/", kind: "text/html; charset=utf-8", plain: include_bytes!("../../assets/index.html"), gzip: include_bytes!("../../assets/index.html.gz") },
];

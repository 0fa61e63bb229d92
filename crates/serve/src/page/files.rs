//! The files of the page. Written by `npm run build` in `web`; nothing here is edited by hand.

use super::File;

#[rustfmt::skip]
pub(super) const FILES: [File; 10] = [
    File { path: "/assets/CallRow-DpNcLtc-.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallRow-DpNcLtc-.js"), gzip: include_bytes!("../../assets/assets/CallRow-DpNcLtc-.js.gz") },
    File { path: "/assets/CallsView-B87q_2ht.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallsView-B87q_2ht.js"), gzip: include_bytes!("../../assets/assets/CallsView-B87q_2ht.js.gz") },
    File { path: "/assets/ProgramsView-BrpoFQXQ.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ProgramsView-BrpoFQXQ.js"), gzip: include_bytes!("../../assets/assets/ProgramsView-BrpoFQXQ.js.gz") },
    File { path: "/assets/PromptsView-DkSJo8_g.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/PromptsView-DkSJo8_g.js"), gzip: include_bytes!("../../assets/assets/PromptsView-DkSJo8_g.js.gz") },
    File { path: "/assets/ResourcesView-D81Wjt3q.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ResourcesView-D81Wjt3q.js"), gzip: include_bytes!("../../assets/assets/ResourcesView-D81Wjt3q.js.gz") },
    File { path: "/assets/ServersView-B7AI1b4k.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ServersView-B7AI1b4k.js"), gzip: include_bytes!("../../assets/assets/ServersView-B7AI1b4k.js.gz") },
    File { path: "/assets/index-C3yJ79R3.css", kind: "text/css; charset=utf-8", plain: include_bytes!("../../assets/assets/index-C3yJ79R3.css"), gzip: include_bytes!("../../assets/assets/index-C3yJ79R3.css.gz") },
    File { path: "/assets/index-CRVReFJo.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/index-CRVReFJo.js"), gzip: include_bytes!("../../assets/assets/index-CRVReFJo.js.gz") },
    File { path: "/assets/validate.worker-C-5yPeix.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js"), gzip: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js.gz") },
    File { path: "/", kind: "text/html; charset=utf-8", plain: include_bytes!("../../assets/index.html"), gzip: include_bytes!("../../assets/index.html.gz") },
];

//! The files of the page. Written by `npm run build` in `web`; nothing here is edited by hand.

use super::File;

#[rustfmt::skip]
pub(super) const FILES: [File; 10] = [
    File { path: "/assets/CallRow-BRrvdbm7.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallRow-BRrvdbm7.js"), gzip: include_bytes!("../../assets/assets/CallRow-BRrvdbm7.js.gz") },
    File { path: "/assets/CallsView-t1AhvmTj.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/CallsView-t1AhvmTj.js"), gzip: include_bytes!("../../assets/assets/CallsView-t1AhvmTj.js.gz") },
    File { path: "/assets/ProgramsView-BqLa8CLg.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ProgramsView-BqLa8CLg.js"), gzip: include_bytes!("../../assets/assets/ProgramsView-BqLa8CLg.js.gz") },
    File { path: "/assets/PromptsView-CZzCnykm.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/PromptsView-CZzCnykm.js"), gzip: include_bytes!("../../assets/assets/PromptsView-CZzCnykm.js.gz") },
    File { path: "/assets/ResourcesView-B8orZc3h.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ResourcesView-B8orZc3h.js"), gzip: include_bytes!("../../assets/assets/ResourcesView-B8orZc3h.js.gz") },
    File { path: "/assets/ServersView-xhmOMWVv.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/ServersView-xhmOMWVv.js"), gzip: include_bytes!("../../assets/assets/ServersView-xhmOMWVv.js.gz") },
    File { path: "/assets/index-D9_Uxu36.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/index-D9_Uxu36.js"), gzip: include_bytes!("../../assets/assets/index-D9_Uxu36.js.gz") },
    File { path: "/assets/index-cvwnlj35.css", kind: "text/css; charset=utf-8", plain: include_bytes!("../../assets/assets/index-cvwnlj35.css"), gzip: include_bytes!("../../assets/assets/index-cvwnlj35.css.gz") },
    File { path: "/assets/validate.worker-C-5yPeix.js", kind: "text/javascript; charset=utf-8", plain: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js"), gzip: include_bytes!("../../assets/assets/validate.worker-C-5yPeix.js.gz") },
    File { path: "/", kind: "text/html; charset=utf-8", plain: include_bytes!("../../assets/index.html"), gzip: include_bytes!("../../assets/index.html.gz") },
];

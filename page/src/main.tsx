// SPDX-License-Identifier: MIT
import { render } from "preact";
import { App } from "./app";
import "./style/base.css";
import "./style/topbar.css";
import "./style/timeline.css";
import "./style/dock.css";
import "./style/table.css";
import "./style/sql.css";
import "./style/page.css";

render(<App />, document.getElementById("app")!);

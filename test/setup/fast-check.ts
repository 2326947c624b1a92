/**
 * What `fast-check` is in tests: the same draws every time, so that nobody's change fails by a chance that is not its own. With
 * RLCLI_TEST_ALL they differ each time; the seed that is told with a failure repeats it.
 */
import fc from "../../node_modules/fast-check/lib/fast-check.js";

if (!process.env.RLCLI_TEST_ALL) fc.configureGlobal({ seed: 1 });

export default fc;

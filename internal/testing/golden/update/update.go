// Package update has the flag -update of tests that compare files with results: with it, they write the files. It is
// apart from package golden, so that tests of other modules need not what that one reads its files with.
//
// It must not know which files there are.
package update

import "flag"

// Files is whether files are written.
var Files = flag.Bool("update", false, "write the results into the files that tests compare them with")

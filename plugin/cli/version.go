package cli

import (
	"runtime/debug"
	"strings"

	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Version returns the version that the program was built from: the release that the linker set, the module's version,
// or else the commit.
func Version(release string) string {
	version := telemetry.VersionOf(release)
	if version != "(devel)" { // Go's value for a build of a working copy
		return version
	}
	return strings.TrimSuffix("devel-"+Commit(), "-")
}

// Commit returns the revision that the program was built from: seven characters, and "-dirty" if the working tree had
// changes. It is empty if the program was built with -buildvcs=false or outside a repository.
func Commit() string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	revision, suffix := "", ""
	for _, setting := range build.Settings {
		switch {
		case setting.Key == "vcs.revision":
			revision = setting.Value[:min(7, len(setting.Value))]
		case setting.Key == "vcs.modified" && setting.Value == "true":
			suffix = "-dirty"
		}
	}
	return revision + suffix
}

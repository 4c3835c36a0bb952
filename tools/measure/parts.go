package main

import (
	"slices"
	"strings"
)

// parts are the parts of the repository whose sizes are told apart. A file belongs to the first part that has a prefix
// of its name, and to the product if none has.
//
// Legacy is what older API versions and foreign formats need. Proof is what only tests, developers and the sandbox run.
// The folders that are no longer here are those of the commit that the table begins with.
var parts = []struct {
	name     string
	prefixes []string
}{
	{"legacy", []string{
		"internal/legacy/", "api/karpenter/v1beta1/", "api/karpenter/v1alpha5/", "api/aws/v1beta1/", "api/aws/v1alpha1/",
		"internal/compat/", "internal/migrate/", "internal/conversion/", "internal/admission/", "internal/controller/legacy/",
		"internal/controller/oldnames/",
	}},
	{"proof", []string{
		"internal/testing/", "test/", "sandbox/", "tools/",
		"internal/engine/audit/", "internal/sim/", "internal/sandbox/", "internal/cloud/aws/awssim/", "internal/cloud/aws/awstest/",
		"cloud/cloudtest/", "internal/cloud/cloudtest/", "internal/cluster/convert/converttest/",
	}},
}

// part returns the part of the repository that a file belongs to.
func part(name string) string {
	for _, p := range parts {
		for _, prefix := range p.prefixes {
			if strings.HasPrefix(name, prefix) {
				return p.name
			}
		}
	}
	return "product"
}

// rooms are the folders by which the house is divided. A room that moves keeps its former folders here, for the commits
// before; a file belongs to the first room that has a prefix of its name.
var rooms = []struct {
	name     string
	prefixes []string
}{
	{"api", []string{"api/"}},
	{"plugin", []string{"plugin/", "cmd/kubectl-karpenter/", "internal/offline/", "internal/web/", "internal/top/", "internal/doctor/",
		"internal/cli/", "internal/table/", "internal/viewer/"}},
	{"cmd", []string{"cmd/"}},
	{"internal/engine", []string{"internal/engine/"}},
	{"internal/cluster", []string{"internal/cluster/"}},
	{"internal/controller", []string{"internal/controller/"}},
	{"internal/execute", []string{"internal/execute/"}},
	{"internal/telemetry", []string{"internal/telemetry/"}},
	{"internal/transport", []string{"internal/transport/", "internal/apitime/", "internal/leading/"}},
	{"cloud", []string{"cloud/", "internal/cloud/"}},
	{"legacy", []string{"internal/legacy/", "internal/compat/", "internal/migrate/"}},
	{"internal/testing", []string{"internal/testing/"}},
	{"test", []string{"test/"}},
	{"sandbox", []string{"sandbox/"}},
	{"tools", []string{"tools/"}},
	{"elsewhere", []string{""}},
}

// addRooms adds the lines of Go of each room, without tests.
func (r *repository) addRooms(add func(name string, value any, detail string)) {
	lines := make([]int, len(rooms))
	for _, f := range r.files {
		if f.test {
			continue
		}
		for i, room := range rooms {
			if slices.ContainsFunc(room.prefixes, func(prefix string) bool { return strings.HasPrefix(f.name, prefix) }) {
				lines[i] += strings.Count(f.text, "\n")
				break
			}
		}
	}
	for i, room := range rooms {
		add("lines of "+room.name, lines[i], "")
	}
}

package main

import "strings"

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
		"internal/compat/", "internal/migrate/", "internal/conversion/", "internal/admission/", "internal/controller/legacy/", "internal/controller/oldnames/",
	}},
	{"proof", []string{
		"internal/testing/", "test/", "sandbox/", "tools/",
		"internal/engine/audit/", "internal/sim/", "internal/sandbox/", "internal/cloud/aws/awssim/", "internal/cloud/aws/awstest/",
		"internal/cloud/cloudtest/", "internal/cluster/convert/converttest/",
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

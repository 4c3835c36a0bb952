package telemetry

import "testing"

// TestResourceOf verifies that the resource of a request is derived from the path that client-go reports, in which
// names are replaced.
func TestResourceOf(t *testing.T) {
	for _, c := range []struct{ path, group, version, kind, subresource string }{
		{"/api/v1/nodes", "", "v1", "nodes", ""},
		{"/api/v1/nodes/{name}", "", "v1", "nodes", ""},
		{"/api/v1/nodes/{name}/status", "", "v1", "nodes", "status"},
		{"/api/v1/namespaces/{name}", "", "v1", "namespaces", ""},
		{"/api/v1/namespaces/{namespace}/pods", "", "v1", "pods", ""},
		{"/api/v1/namespaces/{namespace}/pods/{name}/eviction", "", "v1", "pods", "eviction"},
		{"/apis/karpenter.sh/v1/nodeclaims/{name}/status", "karpenter.sh", "v1", "nodeclaims", "status"},
		{"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}", "coordination.k8s.io", "v1", "leases", ""},
		{"/base/apis/karpenter.sh/v1/nodepools", "karpenter.sh", "v1", "nodepools", ""},
		{"/{prefix}", "", "", "", ""}, {"/apis", "", "", "", ""}, {"/api/v1", "", "", "", ""}, {"", "", "", "", ""},
	} {
		group, version, kind, subresource := resourceOf(c.path)
		switch {
		case group != c.group:
			t.Errorf("%s: group is %v, want %v", c.path, group, c.group)
		case version != c.version:
			t.Errorf("%s: version is %v, want %v", c.path, version, c.version)
		case kind != c.kind:
			t.Errorf("%s: kind is %v, want %v", c.path, kind, c.kind)
		case subresource != c.subresource:
			t.Errorf("%s: subresource is %v, want %v", c.path, subresource, c.subresource)
		}
	}
}

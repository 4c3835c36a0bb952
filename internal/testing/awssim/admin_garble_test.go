package awssim

import (
	"encoding/json"
	"testing"
)

// The body of a fault and that of a message have the same name over HTTP, and both are decoded.
func TestAdminBody(t *testing.T) {
	var r adminRequest
	if err := json.Unmarshal([]byte(`{"kind": "garble", "body": "<html>"}`), &r); err != nil {
		t.Fatal(err)
	}
	if r.Fault.Body != "<html>" || r.Body != "<html>" {
		t.Errorf("the fault has the body %q, the request %q; want <html> in both", r.Fault.Body, r.Body)
	}
}

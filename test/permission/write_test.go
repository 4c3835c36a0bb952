package permission

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWrites checks that the writes of one token are found: not those of another token of the same account, no reads,
// nothing that was refused, and neither Leases nor events.
func TestWrites(t *testing.T) {
	line := func(verb, resource, token string, code int) string {
		return fmt.Sprintf(`{"verb":%q,"user":{"username":"u","extra":{"authentication.kubernetes.io/credential-id":["JTI=%s"]}},`+
			`"objectRef":{"resource":%q,"name":"n"},"responseStatus":{"code":%d},`+
			`"requestReceivedTimestamp":"2026-01-01T12:00:00.5Z","annotations":{"authorization.k8s.io/decision":"allow"}}`,
			verb, token, resource, code)
	}
	path := filepath.Join(t.TempDir(), "audit.log")
	log := []string{
		line("create", "nodeclaims", "one", 201), line("patch", "nodes", "other", 200), line("list", "nodes", "one", 200),
		line("patch", "nodes", "one", 409), line("update", "leases", "one", 200), line("create", "events", "one", 201),
		line("delete", "nodes", "one", 200),
	}
	if err := os.WriteFile(path, []byte(strings.Join(log, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	token := "header." + base64.RawURLEncoding.EncodeToString([]byte(`{"jti":"one","sub":"u"}`)) + ".signature"
	credential, err := Credential([]byte("apiVersion: v1\nkind: Config\nusers: [{name: it, user: {token: " + token + "}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	writes, err := Writes(path, credential)
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, w := range writes {
		have = append(have, w.String())
	}
	want := []string{"2026-01-01T12:00:00.5Z create nodeclaims.core /n", "2026-01-01T12:00:00.5Z delete nodes.core /n"}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("(-want +have):\n%s", diff)
	}
}

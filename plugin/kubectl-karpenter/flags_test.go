package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/karpenter-go/karpenter/plugin/offline"
)

// twoContexts is a kubeconfig with two clusters, two users and two contexts.
func twoContexts(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	const text = `apiVersion: v1
kind: Config
clusters: [{name: east, cluster: {server: "https://east.example"}}, {name: west, cluster: {server: "https://west.example"}}]
users: [{name: ann, user: {token: of-ann}}, {name: ben, user: {token: of-ben}}]
contexts: [{name: a, context: {cluster: east, user: ann, namespace: shop}}, {name: b, context: {cluster: west, user: ben}}]
current-context: a
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestConnectionFlags checks kubectl's flags by the connection that follows from them.
func TestConnectionFlags(t *testing.T) {
	for _, c := range []struct{ flags, want string }{
		{"", "https://east.example of-ann  [] 0s shop"},
		{"--context b", "https://west.example of-ben  [] 0s default"},
		{"--cluster west", "https://west.example of-ann  [] 0s shop"},
		{"--user ben", "https://east.example of-ben  [] 0s shop"},
		{"--token mine --server https://other.example", "https://other.example mine  [] 0s shop"},
		{"--as carl --as-group g --as-group h", "https://east.example of-ann carl [g h] 0s shop"},
		{"--request-timeout 7s -n stock", "https://east.example of-ann  [] 7s stock"},
	} {
		var connection offline.Connection
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		addConnectionFlags(flags, &connection)
		addNamespaceFlag(flags, &connection, "")
		if err := flags.Parse(append(strings.Fields(c.flags), "--kubeconfig", twoContexts(t))); err != nil {
			t.Fatal(err)
		}
		config, err := connection.Config()
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(config.Host, " ", config.BearerToken, " ", config.Impersonate.UserName, " ", config.Impersonate.Groups, " ", config.Timeout, " ", connection.Home())
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.flags, diff)
		}
	}
}

// TestNoConfiguration checks the error if neither a kubeconfig nor a flag names a cluster, and that a flag is enough.
func TestNoConfiguration(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	if _, err := runProgram(t, "", "top", "--once"); err == nil || !strings.Contains(err.Error(), "no cluster: give --kubeconfig FILE") {
		t.Errorf("got %v", err)
	}
	missing := filepath.Join(t.TempDir(), "none")
	t.Setenv("KUBECONFIG", missing)
	if _, err := runProgram(t, "", "top", "--once"); err == nil || !strings.Contains(err.Error(), "KUBECONFIG is "+missing) {
		t.Errorf("got %v", err)
	}
	impersonated := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		impersonated = r.Header.Get("Impersonate-User")
		http.Error(w, "{}", http.StatusTeapot)
	}))
	defer server.Close()
	if _, err := runProgram(t, "", "top", "--once", "--server", server.URL, "--as", "ann"); err == nil || impersonated != "ann" {
		t.Errorf("impersonated is %q, the error %v", impersonated, err)
	}
}

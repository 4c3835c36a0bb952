package capture

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestWrite checks that a document is read as it was written, that only its owner may read the file, also in the place of
// another one, and that nothing else remains in the folder.
func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "capture.json")
	if err := os.WriteFile(path, []byte("older"), 0o644); err != nil {
		t.Fatal(err)
	}
	d := &Document{Input: Input{Objects: []json.RawMessage{}, Sale: &PriceList{Catalogs: []PriceListEntry{{Reason: "none"}}}},
		Options: Options{Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
	if err := d.Write(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	read, err := Parse(text)
	if diff := cmp.Diff(d, read); err != nil || diff != "" {
		t.Errorf("%v (-written +read):\n%s", err, diff)
	}
	about, err := os.Stat(path)
	if err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("%v: the mode is %s", err, about.Mode())
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("%v: the folder has %v", err, entries)
	}
}

// TestWriteFails checks that an error names the file that was asked for.
func TestWriteFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "capture.json")
	var failed *fs.PathError
	if err := new(Document).Write(path); !errors.As(err, &failed) || failed.Path != path || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if err := new(Document).Write(os.DevNull); err != nil {
		t.Errorf("a device: %v", err)
	}
}

// TestParse checks what is not a capture.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		`[]`: "is not a capture", `{"extra":1}`: "unknown field", `{"apiVersion":"v1","kind":"Pod"}`: "is Pod of v1, want Capture",
		`{"apiVersion":"` + Type.APIVersion + `","kind":"Capture"}`: "input.sale: is missing",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-go/karpenter/internal/legacy/migrate"
)

// TestMigratedValues checks that the chart renders the output of `kubectl karpenter migrate` for older values like those
// older values, and that its notes contain no warnings about the output.
func TestMigratedValues(t *testing.T) {
	paths, err := filepath.Glob("testdata/old/*.yaml")
	if err != nil || len(paths) < 5 {
		t.Fatalf("%d files of old values: %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			result := migrate.Run([]migrate.File{{Name: path, Text: text}}, migrate.Options{})
			var migrated values
			if err := yaml.Unmarshal(result.Manifests, &migrated); err != nil {
				t.Fatalf("%v\n%s", err, result.Manifests)
			}
			before := render(t, mainChart, read(t, "old/"+filepath.Base(path)))
			after := render(t, mainChart, migrated)
			want := decode[appsv1.Deployment](t, before, "Deployment")
			if diff := cmp.Diff(want, decode[appsv1.Deployment](t, after, "Deployment")); diff != "" {
				t.Errorf("the controller differs (-as written +migrated):\n%s", diff)
			}
			for line := range strings.Lines(after.notes) {
				if strings.HasPrefix(line, "  - ") {
					t.Errorf("the chart still warns: %s", line)
				}
			}
		})
	}
}

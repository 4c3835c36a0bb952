package v1beta1

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-go/karpenter/internal/testing/golden"
)

// TestConversions verifies the files in testdata. Each has a description, an object of v1beta1, and the same in v1.
// The reverse conversion returns the first object, or the one in a third section.
func TestConversions(t *testing.T) {
	if files := golden.Read(t, "testdata"); len(files) < 15 {
		t.Fatalf("%d files in testdata, want 15 at least", len(files))
	}
	golden.Each(t, convertedBoth)
}

func convertedBoth(t *testing.T, file *golden.File) {
	sections := map[string]map[string]any{}
	for _, section := range file.Files {
		sections[section.Name] = parsed(t, section.Data)
	}
	c := Converter{Expiry: func(pool string) string { return map[string]string{"known": "72h"}[pool] }}
	before := runtime.DeepCopyJSON(sections["v1beta1"])
	now, err := c.ToV1(sections["v1beta1"])
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "to v1", sections["v1"], without(now, AnnotationV1Beta1))
	back, err := c.FromV1(now)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "and back", before, back)
	plain, err := c.FromV1(sections["v1"])
	if err != nil {
		t.Fatal(err)
	}
	want := sections["back"]
	if want == nil {
		want = before
	}
	wantSame(t, "from v1", want, without(plain, AnnotationV1))
	again, err := c.ToV1(plain)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "from v1, and back", sections["v1"], again)
	wantSame(t, "the object that was converted", before, sections["v1beta1"])
}

func parsed(t *testing.T, text []byte) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		t.Fatal(err)
	}
	fields := object(string(data))
	if fields == nil {
		t.Fatalf("not an object: %s", text)
	}
	return fields
}

func without(object map[string]any, key string) map[string]any {
	object = runtime.DeepCopyJSON(object)
	unannotate(object, key)
	return tidy(object)
}

func wantSame(t *testing.T, what string, want, got map[string]any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func example(t *testing.T, name, section string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range txtar.Parse(text).Files {
		if file.Name == section {
			return parsed(t, file.Data)
		}
	}
	t.Fatalf("%s has no %s", name, section)
	return nil
}

// TestAChangeCounts verifies that a change in v1 is visible in v1beta1, and that recorded edits for the old content
// do not overwrite it.
func TestAChangeCounts(t *testing.T) {
	now, err := Converter{}.ToV1(example(t, "spelled-out", "v1beta1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, noted := annotation(now, AnnotationV1Beta1); !noted {
		t.Fatal("the example has no recorded edits; another one is needed")
	}
	child(now, "spec", "disruption")["consolidateAfter"] = "10m"
	child(now, "spec", "template", "spec", "nodeClassRef")["name"] = "other"
	back, err := Converter{}.FromV1(now)
	if err != nil {
		t.Fatal(err)
	}
	if got := child(back, "spec", "disruption")["consolidateAfter"]; got != "10m" {
		t.Errorf("consolidateAfter is %v, want 10m", got)
	}
	if got := child(back, "spec", "template", "spec", "nodeClassRef")["name"]; got != "other" {
		t.Errorf("the class is %v, want other", got)
	}
	if _, left := annotation(back, AnnotationV1Beta1); left {
		t.Error("the annotation of v1 is on the object of v1beta1")
	}
}

// TestStatusIsNoChange verifies the reverse: changes of the status and of other annotations do not count.
func TestStatusIsNoChange(t *testing.T) {
	want := example(t, "spelled-out", "v1beta1")
	now, err := Converter{}.ToV1(want)
	if err != nil {
		t.Fatal(err)
	}
	now["status"] = map[string]any{"nodes": int64(3)}
	annotate(now, "example.com/a", "b")
	back, err := Converter{}.FromV1(now)
	if err != nil {
		t.Fatal(err)
	}
	delete(back, "status")
	wantSame(t, "back", want, without(back, "example.com/a"))
}

// TestForgedNotes verifies that annotations, which any client can write, can neither make a conversion change what it
// must not change, nor make it fail.
func TestForgedNotes(t *testing.T) {
	for name, forged := range map[string]string{
		"a name":      `{"of":"DIGEST","edits":[{"path":["metadata","name"],"value":"other"}]}`,
		"a finalizer": `{"of":"DIGEST","edits":[{"path":["metadata","finalizers"],"value":["a/b"]}]}`,
		"a number":    `{"of":"DIGEST","edits":[{"path":["metadata","annotations","a"],"value":1}]}`,
		"annotations": `{"of":"DIGEST","edits":[{"path":["metadata","annotations"],"value":1}]}`,
		"a kind":      `{"of":"DIGEST","edits":[{"path":["kind"],"value":"Pod"}]}`,
		"no path":     `{"of":"DIGEST","edits":[{"value":"Pod"},{"path":[],"remove":true}]}`,
		"not JSON":    `{`,
		"a list":      `[1]`,
		"null":        `null`,
		"other edits": `{"of":"DIGEST","edits":{"a":1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			now := example(t, "plain", "v1")
			want, err := Converter{}.FromV1(now)
			if err != nil {
				t.Fatal(err)
			}
			annotate(now, AnnotationV1Beta1, strings.ReplaceAll(forged, "DIGEST", digest(now)))
			got, err := Converter{}.FromV1(now)
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, "from v1", want, without(got, AnnotationV1))
		})
	}
}

func TestConvert(t *testing.T) {
	object := example(t, "plain", "v1beta1")
	same, err := Converter{}.Convert(object, "karpenter.sh/v1beta1")
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "in its own version", object, same)
	now, err := Converter{}.Convert(object, "karpenter.sh/v1")
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "in v1", example(t, "plain", "v1"), now)
	back, err := Converter{}.Convert(now, "karpenter.sh/v1beta1")
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "back", object, back)
	for name, test := range map[string]struct {
		change func(map[string]any)
		to     string
	}{
		"another version": {func(map[string]any) {}, "karpenter.sh/v2"},
		"another group":   {func(map[string]any) {}, "karpenter.k8s.aws/v1"},
		"another kind":    {func(o map[string]any) { o["kind"] = "Provisioner" }, "karpenter.sh/v1"},
		"from elsewhere":  {func(o map[string]any) { o["apiVersion"] = "karpenter.sh/v1alpha5" }, "karpenter.sh/v1"},
		"no kind":         {func(o map[string]any) { delete(o, "kind") }, "karpenter.sh/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			wrong := runtime.DeepCopyJSON(object)
			test.change(wrong)
			if got, err := (Converter{}).Convert(wrong, test.to); err == nil {
				t.Errorf("got %v, want an error", got)
			}
		})
	}
}

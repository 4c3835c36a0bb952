package v1alpha5

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/testing/golden"
)

// TestGolden verifies one translation per file: a description, optional settings, manifests as users wrote them, then
// the results and notes.
func TestGolden(t *testing.T) { golden.Each(t, translated) }

func translated(t *testing.T, file *golden.File) {
	objects, settings, inputs := inputsOf(t, file.Archive)
	results := Translate(objects, settings)
	inputs.Files = append(inputs.Files, txtar.File{Name: "want.yaml", Data: manifests(t, results)}, txtar.File{Name: "notes",
		Data: reported(results)})
	file.CheckAll(t, inputs)
	for _, r := range results {
		readBack(t, r)
	}
	for seed := range uint64(8) {
		shuffled := slices.Clone(objects)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		same(t, seed, results, Translate(shuffled, settings))
	}
}

// same verifies that the results do not depend on the order of the objects, which the seed determines.
func same(t *testing.T, seed uint64, results, again []Result) {
	t.Helper()
	for _, r := range results {
		i := slices.IndexFunc(again, func(o Result) bool { return o.Kind == r.Kind && o.Name == r.Name })
		if diff := cmp.Diff(string(manifests(t, []Result{r})), string(manifests(t, again[i:i+1]))); diff != "" {
			t.Errorf("%s %s depends on the order of the objects (seed %d):\n%s", r.Kind, r.Name, seed, diff)
		}
	}
}

// readBack verifies that the API returns the objects of a result unchanged: otherwise, a controller that compares the
// two would write endlessly.
func readBack(t *testing.T, r Result) {
	t.Helper()
	if r.Pool != nil {
		again := &karpv1.NodePool{}
		if err := recode(r.Pool, again, "pool", &notes{}); err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepEqual(r.Pool, again) {
			t.Errorf("NodePool %s is read back differently: %s", r.Name, cmp.Diff(r.Pool, again))
		}
	}
	for _, class := range r.Classes {
		again := &awsv1.EC2NodeClass{}
		if err := recode(class, again, "class", &notes{}); err != nil {
			t.Fatal(err)
		}
		if !equality.Semantic.DeepEqual(class, again) {
			t.Errorf("EC2NodeClass %s is read back differently: %s", class.Name, cmp.Diff(class, again))
		}
	}
}

// inputsOf parses the input sections of a golden file, and returns the file without the results.
func inputsOf(t testing.TB, archive *txtar.Archive) (objects []*unstructured.Unstructured, settings Settings, inputs *txtar.Archive) {
	t.Helper()
	inputs = &txtar.Archive{Comment: archive.Comment}
	for _, f := range archive.Files {
		switch f.Name {
		case "settings.yaml":
			if err := yaml.UnmarshalStrict(f.Data, &settings); err != nil {
				t.Fatal(err)
			}
		case "in.yaml":
			objects = documents(t, f.Data)
		default:
			continue
		}
		inputs.Files = append(inputs.Files, f)
	}
	return objects, settings, inputs
}

func documents(t testing.TB, text []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if err == io.EOF {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
}

// manifests returns the objects of results as YAML, without statuses.
func manifests(t testing.TB, results []Result) []byte {
	t.Helper()
	var text bytes.Buffer
	for _, r := range results {
		var made []any
		if r.Pool != nil {
			made = append(made, r.Pool)
		}
		for _, class := range r.Classes {
			made = append(made, class)
		}
		if r.Simulated != nil {
			made = append(made, r.Simulated)
		}
		for _, object := range made {
			data, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			fields := map[string]any{}
			if err := json.Unmarshal(data, &fields); err != nil {
				t.Fatal(err)
			}
			delete(fields, "status")
			data, err = yaml.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			text.WriteString("---\n")
			text.Write(data)
		}
	}
	return text.Bytes()
}

func reported(results []Result) []byte {
	var text bytes.Buffer
	for _, r := range results {
		text.WriteString(r.Kind + " " + r.Name + " (" + r.Version + ")\n")
		for _, note := range r.Notes {
			text.WriteString("  " + note.String() + "\n")
		}
	}
	return text.Bytes()
}

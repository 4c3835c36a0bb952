package chart

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/strvals"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/test/rendering"
)

const guideFile = "../../docs/install.md"

// block is a piece of code of the guide, and what stands before it about who runs it.
type block struct{ who, language, text string }

var fenced = regexp.MustCompile("(?m)(?:^<!-- (.*?) -->\n)?^```(\\w+)\n((?s:.*?))^```$")

// guide are the pieces of code of docs/install.md.
func guide(t *testing.T) []block {
	t.Helper()
	text, err := os.ReadFile(guideFile)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	for _, match := range fenced.FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, block{match[1], match[2], match[3]})
	}
	if len(blocks) < 8 {
		t.Fatalf("%s has %d blocks; the way in which this test reads it is broken", guideFile, len(blocks))
	}
	return blocks
}

// TestInstallGuide holds the guide to its promise: each block is run by a test, or says why not. The commands of Helm are
// run here, as `helm template` would.
func TestInstallGuide(t *testing.T) {
	helm := 0
	for _, b := range guide(t) {
		if !strings.HasPrefix(b.who, "not run: ") && b.who != "run by: TestInstallGuide" && b.who != "run by: TestOnSandbox" {
			t.Errorf("%q stands before a block, want who runs it:\n%s", b.who, b.text)
		}
		if b.who != "run by: TestInstallGuide" {
			continue
		}
		made := owners{}
		for command := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", " ")) {
			words := strings.Fields(command)
			made.add(t, strings.Join(words[:min(len(words), 3)], " "), runHelm(t, words))
			helm++
		}
	}
	if helm < 6 {
		t.Errorf("%d commands of Helm were run, want all of the guide's", helm)
	}
}

// runHelm renders what a `helm install` or `helm upgrade` of the guide would. It takes no option that it does not know.
func runHelm(t *testing.T, words []string) []*unstructured.Unstructured {
	t.Helper()
	command := strings.Join(words, " ")
	if len(words) < 4 || words[0] != "helm" || words[1] != "install" && words[1] != "upgrade" {
		t.Errorf("want helm install or upgrade: %s", command)
		return nil
	}
	o := order{release: words[2], namespace: "default", path: "../../" + words[3], with: values{}}
	for i := 4; i < len(words); i++ {
		switch words[i] {
		case "--namespace":
			i++
			o.namespace = words[i]
		case "--create-namespace", "--reset-then-reuse-values":
		case "--set":
			i++
			// A shell would take the quotation marks away.
			if err := strvals.ParseInto(strings.ReplaceAll(words[i], `"`, ""), o.with); err != nil {
				t.Errorf("%s: %v", command, err)
			}
		default:
			t.Errorf("%s: this test does not know %s", command, words[i])
		}
	}
	if o.path == mainChart && words[1] == "upgrade" {
		o.with = minimal() // the values are those of before
	}
	r, err := o.template(t)
	if err != nil {
		t.Errorf("%s: %v", command, err)
	}
	if strings.Contains(r.notes, "About the values") {
		t.Errorf("%s: %s", command, r.notes)
	}
	return r.objects
}

// owners says for objects, by kind, namespace and name, which release has them: Helm installs none that has an object of
// another.
type owners map[string]string

// add gives objects to a release, and complains of those that another has.
func (o owners) add(t *testing.T, release string, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		id := object.GroupVersionKind().GroupKind().String() + " " + client.ObjectKeyFromObject(object).String()
		if other, taken := o[id]; taken {
			t.Errorf("%s is of %s and of %s", id, other, release)
		}
		o[id] = release
	}
}

// TestChartsShareNothing holds both charts to objects of their own, under the names of the guide and where both releases
// are called alike: with all that can be switched on, and beside a chart that was released before, since the definitions
// are upgraded first.
func TestChartsShareNothing(t *testing.T) {
	for _, release := range []string{"karpenter-crd", releaseName, "a"} {
		for _, path := range append(released(t), mainChart) {
			for _, with := range []values{onAWS(), installed()} {
				for _, main := range []string{releaseName, release} {
					made := owners{}
					made.add(t, definitionChart, order{release, namespace, definitionChart, values{}}.render(t).objects)
					made.add(t, path+" as "+main, order{main, namespace, path, with}.render(t).objects)
				}
			}
		}
	}
}

// followGuide has the API server look at the objects of the guide, as strictly as it can, without making them.
func (w *world) followGuide(t *testing.T) {
	n := 0
	for _, b := range guide(t) {
		if b.language != "yaml" {
			continue
		}
		objects, err := rendering.Parse(b.text)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			n++
			if err := w.Create(t.Context(), object, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
				t.Errorf("the %s %s of the guide: %v", object.GetKind(), object.GetName(), err)
			}
		}
	}
	if n < 5 {
		t.Errorf("the guide has %d objects, want classes, pools and a workload", n)
	}
}

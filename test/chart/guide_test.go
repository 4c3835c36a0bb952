package chart

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/strvals"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
		for command := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", " ")) {
			runHelm(t, strings.Fields(command))
			helm++
		}
	}
	if helm < 6 {
		t.Errorf("%d commands of Helm were run, want all of the guide's", helm)
	}
}

// runHelm renders what a `helm install` or `helm upgrade` of the guide would. It takes no option that it does not know.
func runHelm(t *testing.T, words []string) {
	t.Helper()
	command := strings.Join(words, " ")
	if len(words) < 4 || words[0] != "helm" || words[1] != "install" && words[1] != "upgrade" {
		t.Errorf("want helm install or upgrade: %s", command)
		return
	}
	with := values{}
	for i := 4; i < len(words); i++ {
		switch words[i] {
		case "--namespace":
			i++
		case "--create-namespace", "--reset-then-reuse-values":
		case "--set":
			i++
			// A shell would take the quotation marks away.
			if err := strvals.ParseInto(strings.ReplaceAll(words[i], `"`, ""), with); err != nil {
				t.Errorf("%s: %v", command, err)
			}
		default:
			t.Errorf("%s: this test does not know %s", command, words[i])
		}
	}
	path := "../../" + words[3]
	if path == mainChart && words[1] == "upgrade" {
		with = minimal() // the values are those of before
	}
	r, err := template(t, path, with)
	if err != nil {
		t.Errorf("%s: %v", command, err)
	}
	if strings.Contains(r.notes, "About the values") {
		t.Errorf("%s: %s", command, r.notes)
	}
}

// followGuide has the API server look at the objects of the guide, as strictly as it can, without making them.
func (w *world) followGuide(t *testing.T) {
	n := 0
	for _, b := range guide(t) {
		if b.language != "yaml" {
			continue
		}
		objects, err := parse(b.text)
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

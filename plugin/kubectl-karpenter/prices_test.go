package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/commitment"
	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
)

// TestPricesPage checks that the answers in docs/prices.md are those of the verb, and that they add up: with a price file,
// two nodes at 66 % of the price of m7g.xlarge, and two at that of t4g.xlarge; with reserved instances, four at 1 %.
func TestPricesPage(t *testing.T) {
	const page = "../../docs/prices.md"
	ri := reservedRules(t)
	held(t, page, "<!-- run by: TestPricesPage -->\n```yaml\n", "```\n<!-- end -->", ri)
	file := filepath.Join(t.TempDir(), "ri.yaml")
	if err := os.WriteFile(file, []byte(ri), 0o600); err != nil {
		t.Fatal(err)
	}
	const m7g, t4g = 0.1632, 0.1344
	for _, answer := range []struct {
		n    int
		line string
		usd  float64
	}{
		{1, "simulate -f app.yaml", 4 * t4g},
		{2, "simulate -f app.yaml --price-file prices.yaml", 2*0.66*m7g + 2*t4g},
		{3, "simulate -f app.yaml --price-file ri.yaml", 4 * m7g / pricerule.PaidScale},
	} {
		files := strings.NewReplacer("app.yaml", "testdata/prices/app.yaml", "prices.yaml", "testdata/prices/prices.yaml", "ri.yaml", file)
		out, _, err := askPast(t, "", strings.Fields(files.Replace(answer.line))...)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("price %.4f USD per hour", answer.usd); !strings.Contains(out, want) {
			t.Errorf("want %q in\n%s", want, out)
		}
		held(t, page, fmt.Sprintf("<!-- answer %d: TestPricesPage -->\n```text\n", answer.n), "```\n<!-- end -->",
			"$ kubectl karpenter "+answer.line+"\n"+out)
	}
}

// reservedRules returns the price file for ten regional reserved instances m7g.xlarge, beside another m7g.large that runs.
func reservedRules(t *testing.T) string {
	t.Helper()
	var types []commitment.Type
	for _, known := range catalog.Load().Types {
		types = append(types, commitment.Type{Name: known.Name, VCPUs: known.VCPUs})
	}
	facts := commitment.Facts{Reserved: []commitment.Reserved{{Type: "m7g.xlarge", Count: 10, End: atSix().Add(time.Hour)}},
		Others: []commitment.Instance{{Type: "m7g.large", Zone: "us-east-1a"}}}
	text, err := yaml.Marshal(map[string]any{"rules": facts.Rules(types, atSix())})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestPriceFileErrors(t *testing.T) {
	_, _, err := askPast(t, "", "simulate", "-f", "testdata/prices/app.yaml", "--price-file", "testdata/prices/app.yaml")
	const want = `--price-file: testdata/prices/app.yaml: line 11: a second YAML document`
	if err == nil || !strings.HasPrefix(err.Error(), "--price-file: testdata/prices/app.yaml: ") {
		t.Errorf("error %v, want one like %s", err, want)
	}
}

// TestPriceRuleProblems checks that answers name the rules without effect.
func TestPriceRuleProblems(t *testing.T) {
	file := filepath.Join(t.TempDir(), "prices.yaml")
	rules := "rules:\n- {name: plan, families: [m7gg], factor: 0.66, upTo: {vCPUs: 8}}\n- {name: contract, zones: [us-east-1a], factor: 0.9}\n"
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := askPast(t, "", "simulate", "-f", "testdata/prices/app.yaml", "--price-file", file)
	const want = "price rule plan has no effect: no instance type matches families m7gg\n"
	if err != nil || !strings.Contains(out, want) || strings.Contains(out, "rule contract") {
		t.Errorf("error %v, want %q once in\n%s", err, want, out)
	}
}

// TestTwoCommitments checks that new nodes use the first of two commitments of one type, and what that does not cover, the
// second.
func TestTwoCommitments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "prices.yaml")
	rules := "rules:\n- {name: first, families: [m7g], factor: 0.5, upTo: {vCPUs: 8}}\n" +
		"- {name: second, families: [m7g], factor: 0.66, upTo: {vCPUs: 8}}\n"
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := askPast(t, "", "simulate", "-f", "testdata/prices/app.yaml", "--price-file", file)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "second"} {
		if want := "commitment " + name + ": 0 of 8 vCPUs used by 0 nodes, 8 by new ones, 0 left\n"; !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

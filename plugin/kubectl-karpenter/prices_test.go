package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPricesPage checks that the answers in docs/prices.md are those of the verb, and that they add up: two nodes at 66 %
// of the price of m7g.xlarge, and two at that of t4g.xlarge.
func TestPricesPage(t *testing.T) {
	files := []string{"testdata/prices/app.yaml", "testdata/prices/prices.yaml"}
	for i, line := range []string{"simulate -f app.yaml", "simulate -f app.yaml --price-file prices.yaml"} {
		arguments := strings.Fields(strings.NewReplacer("app.yaml", files[0], "prices.yaml", files[1]).Replace(line))
		out, _, err := askPast(t, "", arguments...)
		if err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			const m7g, t4g = 0.1632, 0.1344
			want := fmt.Sprintf("price %.4f USD per hour", math.Round(1e4*(2*0.66*m7g+2*t4g))/1e4)
			if !strings.Contains(out, want) {
				t.Errorf("want %q in\n%s", want, out)
			}
		}
		held(t, "../../docs/prices.md", fmt.Sprintf("<!-- answer %d: TestPricesPage -->\n```text\n", i+1), "```\n<!-- end -->",
			"$ kubectl karpenter "+line+"\n"+out)
	}
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
	const want = "price rule plan has no effect: no pool can launch families m7gg\n"
	if err != nil || !strings.Contains(out, want) || strings.Contains(out, "rule contract") {
		t.Errorf("error %v, want %q once in\n%s", err, want, out)
	}
}

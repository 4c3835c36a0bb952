package top

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/karpenter-go/karpenter/plugin/bill"
)

// TestScreenBill checks that the key tab reaches the cost, if there is one, that it scrolls and is filtered, and that it
// fits every size.
func TestScreenBill(t *testing.T) {
	f := large(10)
	s := &Screen{}
	s.Resize(80, 14)
	s.Show(f)
	for range 3 {
		s.Press("tab")
	}
	if text := s.Render(); !strings.Contains(text, "nodes 1-") {
		t.Errorf("a fleet without a bill has another table after pools:\n%s", text)
	}
	f.Bill = &bill.Bill{Grouping: bill.Grouping{By: bill.ByNamespace}, PerHour: 5e9, PerMonth: 5e9 * 730, Nodes: 10}
	for i := range 50 {
		f.Bill.Rows = append(f.Bill.Rows, bill.Row{Kind: bill.Pods, Namespace: fmt.Sprintf("team-%02d", i), Pods: 1, PerHour: 1e8,
			PerMonth: 1e8 * 730})
	}
	s.Show(f)
	for range 3 {
		s.Press("tab")
	}
	s.Press("end")
	text := s.Render()
	for _, want := range []string{"NAMESPACE", "team-49", "cost 43-50 of 50", "73.00"} {
		if !strings.Contains(text, want) {
			t.Errorf("the cost lacks %q:\n%s", want, text)
		}
	}
	if request := s.Press("enter"); request.Explain != nil || s.page != nil {
		t.Errorf("enter on a row of the cost asks for %+v", request)
	}
	for _, key := range []string{"/", "t", "e", "a", "m", "-", "0", "7", "enter"} {
		s.Press(key)
	}
	if text = s.Render(); !strings.Contains(text, "cost 1-1 of 1") || !strings.Contains(text, "team-07") {
		t.Errorf("the filter does not apply to the cost:\n%s", text)
	}
	for _, width := range []int{1, 10, 30, 80} {
		s.Resize(width, 14)
		for line := range strings.Lines(s.Render()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("width %d: a line has %d columns: %s", width, n, line)
			}
		}
	}
}

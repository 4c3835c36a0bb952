package table_test

import (
	"testing"

	"github.com/karpenter-go/karpenter/plugin/table"
)

// TestMarkdown checks the form of a table, and that ordinary names and sentences are not changed. That hostile names
// are no markup is checked by test/page with a parser of another project.
func TestMarkdown(t *testing.T) {
	got := table.Markdown([]string{"Node", "USD/h"}, func(column int) bool { return column == 1 },
		[][]string{{"web-7f8c.a: at 10:20:30, 4 (50%)", "0.1"}, {"a|b\n<i>", ""}})
	want := "| Node | USD/h |\n| --- | ---: |\n| web-7f8c.a: at 10:20:30, 4 (50%) | 0.1 |\n| a\\|b &lt;i&gt; |  |\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

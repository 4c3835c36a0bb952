package check

import (
	"slices"
)

// Report is the result. Price and Cost are USD per hour by the catalog; Cost includes NodePrice for each new node.
type Report struct {
	Nodes        int            `json:"nodes"`
	Placed       int            `json:"placed"`
	Unscheduled  int            `json:"unscheduled"`
	Price        float64        `json:"price"`
	Cost         float64        `json:"cost"`
	Warnings     map[string]int `json:"warnings"`
	Problems     map[string]int `json:"problems"`
	Examples     []string       `json:"examples"` // up to five, of different kinds if possible
	EndStateOnly bool           `json:"endStateOnly"`

	texts map[string][]string
}

// Count returns the number of problems.
func (r *Report) Count() int {
	sum := 0
	for _, n := range r.Problems {
		sum += n
	}
	return sum
}

func (r *Report) problem(kind, text string) {
	r.Problems[kind]++
	if len(r.texts[kind]) < 5 {
		r.texts[kind] = append(r.texts[kind], kind+": "+text)
	}
}

// warn counts warnings; zero adds no entry.
func (r *Report) warn(kind string, n int) {
	if n > 0 {
		r.Warnings[kind] += n
	}
}

// examples returns up to five problems, each kind once before any twice.
func (r *Report) examples() []string {
	kinds := make([]string, 0, len(r.texts))
	for kind := range r.texts {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	all := []string{}
	for i := range 5 {
		for _, kind := range kinds {
			if i < len(r.texts[kind]) && len(all) < 5 {
				all = append(all, r.texts[kind][i])
			}
		}
	}
	return all
}

// Package simplex solves small linear programs. It must not know what their numbers mean.
package simplex

// Tableau holds cell[i][j] for basic variable i and non-basic j. The last column is the right-hand side, the last row
// the objective. It is reusable: the memory of its cells is kept.
type Tableau struct {
	cell         [][]float64
	basic, other []int
	scale        []float64
	slab         []float64
}

// Maximize solves max c.x subject to rows.x <= limit, x >= 0, all limits >= 0, by the simplex method on the condensed
// tableau with Bland's rule, which cannot cycle. There are few variables (resources) and few rows (offerings). Every
// product is rounded before it is added (by explicit conversions), so that all processors compute the same bits.
func (t *Tableau) Maximize(c []float64, rows [][]float64, limit []float64) []float64 {
	t.begin(c, rows, limit)
	for range 50 * (len(c) + 1) {
		column, found := t.entering()
		if !found {
			break
		}
		row, bounded := t.leaving(column)
		if !bounded {
			break
		}
		t.pivot(row, column)
	}
	return t.solution(len(c))
}

func (t *Tableau) begin(c []float64, rows [][]float64, limit []float64) {
	n := len(c)
	t.cell, t.basic, t.other, t.scale = t.cell[:0], t.basic[:0], t.other[:0], make([]float64, n)
	if size := (n + 1) * (len(rows) + 1); len(t.slab) < size {
		t.slab = make([]float64, size)
	}
	line := func(i int) []float64 { return t.slab[i*(n+1) : (i+1)*(n+1)] }
	// Resources differ by nine orders of magnitude (millicores, bytes): scale each column to a largest entry of one.
	for j := range n {
		for _, row := range rows {
			t.scale[j] = max(t.scale[j], row[j])
		}
		if t.scale[j] == 0 {
			t.scale[j] = 1
		}
		t.other = append(t.other, j)
	}
	for i, row := range rows {
		cells := line(i)
		for j := range n {
			cells[j] = max(0, row[j]) / t.scale[j]
		}
		cells[n] = limit[i]
		t.cell = append(t.cell, cells)
		t.basic = append(t.basic, n+i)
	}
	objective := line(len(rows))
	clear(objective)
	var top float64
	for j := range n {
		objective[j] = -c[j] / t.scale[j]
		top = max(top, -objective[j])
	}
	for j := range n {
		objective[j] /= max(top, 1e-300)
	}
	t.cell = append(t.cell, objective)
}

const tiny = 1e-12

func (t *Tableau) entering() (int, bool) {
	objective := t.cell[len(t.cell)-1]
	best, found := 0, false
	for j := range t.other {
		if objective[j] < -tiny && (!found || t.other[j] < t.other[best]) {
			best, found = j, true
		}
	}
	return best, found
}

func (t *Tableau) leaving(column int) (int, bool) {
	n := len(t.other)
	best, found := 0, false
	var bestRatio float64
	for i := range t.basic {
		if t.cell[i][column] <= tiny {
			continue
		}
		ratio := t.cell[i][n] / t.cell[i][column]
		if !found || ratio < bestRatio || ratio == bestRatio && t.basic[i] < t.basic[best] {
			best, bestRatio, found = i, ratio, true
		}
	}
	return best, found
}

func (t *Tableau) pivot(row, column int) {
	p := t.cell[row][column]
	for j := range t.cell[row] {
		if j != column {
			t.cell[row][j] /= p
		}
	}
	for i := range t.cell {
		if i == row {
			continue
		}
		f := t.cell[i][column]
		for j := range t.cell[i] {
			if j != column {
				t.cell[i][j] -= float64(f * t.cell[row][j])
			}
		}
		t.cell[i][column] = -f / p
	}
	t.cell[row][column] = 1 / p
	t.basic[row], t.other[column] = t.other[column], t.basic[row]
}

func (t *Tableau) solution(n int) []float64 {
	x := make([]float64, n)
	for i, v := range t.basic {
		if v < n {
			x[v] = t.cell[i][len(t.other)] / t.scale[v]
		}
	}
	return x
}

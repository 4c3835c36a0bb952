package bound

// The linear program over the patterns found so far, by the revised simplex method:
//
//	minimize    sum over patterns of cost * x
//	subject to  sum over patterns of counts[i] * x + what limited supplies hold of i  >=  count[i]  for each item
//	            what items use of a resource of a class of limited supplies           <=  1         for each class and resource
//
// Its dual gives candidate values for the items. The inverse of the basis is dense and updated with each pivot.
// Accumulated errors make the values worse, but never the bound wrong.

// column is a pattern, the surplus of a row, or an assignment of an item to a class of limited supplies.
type column struct {
	cost  float64
	rows  []int32
	coefs []float64
}

type master struct {
	columns []column
	rows    int
	// inverse of the basis, row by row; basis is the column of each row, level its amount.
	inverse []float64
	basis   []int
	level   []float64
	inBasis []bool
	dual    []float64
	// work is the number of operations done.
	work int64
	// next is the column at which the search for the entering column continues.
	next int
	// entering is scratch space.
	entering []float64
}

// newMaster returns a program with the right-hand sides. start sets its initial diagonal basis.
func newMaster(right []float64) *master {
	m := &master{rows: len(right), level: append([]float64(nil), right...)}
	m.inverse = make([]float64, m.rows*m.rows)
	m.basis = make([]int, m.rows)
	m.dual = make([]float64, m.rows)
	m.entering = make([]float64, m.rows)
	return m
}

// add appends a column and returns its number.
func (m *master) add(c column) int {
	m.columns = append(m.columns, c)
	m.inBasis = append(m.inBasis, false)
	return len(m.columns) - 1
}

// start makes a column with a single coefficient the basic one of its row.
func (m *master) start(c int) {
	row, coef := int(m.columns[c].rows[0]), m.columns[c].coefs[0]
	m.basis[row] = c
	m.inBasis[c] = true
	m.inverse[row*m.rows+row] = 1 / coef
	m.level[row] /= coef
	m.dual[row] = m.columns[c].cost / coef
}

// price recomputes the duals of the basis, after costs have changed.
func (m *master) price() {
	clear(m.dual)
	for i, c := range m.basis {
		cost := m.columns[c].cost
		if cost == 0 {
			continue
		}
		for j, x := range m.inverse[i*m.rows : (i+1)*m.rows] {
			m.dual[j] += float64(cost * x)
		}
	}
	m.work += int64(m.rows * m.rows)
}

// worth returns the cost of the current solution.
func (m *master) worth() float64 {
	f := 0.0
	for i, c := range m.basis {
		f += float64(m.columns[c].cost * m.level[i])
	}
	return f
}

// reducedCost returns the reduced cost of a column: negative if the column makes the solution cheaper.
func (m *master) reducedCost(c int) float64 {
	f := m.columns[c].cost
	for j, row := range m.columns[c].rows {
		f -= float64(m.dual[row] * m.columns[c].coefs[j])
	}
	return f
}

const tiny = 1e-9

// block is how many columns are compared to find the entering column. Searching for the best of all columns costs
// more than it gains.
const block = 400

// solve pivots until no column makes the solution cheaper or the work is done.
func (m *master) solve(work int64) {
	end := m.work + work
	m.price()
	for m.work < end {
		best, bestCost := -1, -tiny
		for n := 1; n <= len(m.columns); n++ {
			if m.next++; m.next >= len(m.columns) {
				m.next = 0
			}
			if m.inBasis[m.next] {
				continue
			}
			m.work += int64(len(m.columns[m.next].rows))
			if f := m.reducedCost(m.next); f < bestCost {
				best, bestCost = m.next, f
			}
			if best >= 0 && n%block == 0 {
				break
			}
		}
		if best < 0 || !m.pivot(best, bestCost) {
			return
		}
	}
}

// pivot brings a column into the basis. It returns false if the column is unbounded or the numerical precision is
// exhausted.
func (m *master) pivot(c int, reduced float64) bool {
	n := m.rows
	clear(m.entering)
	for j, row := range m.columns[c].rows {
		coef := m.columns[c].coefs[j]
		for i := range n {
			if x := m.inverse[i*n+int(row)]; x != 0 {
				m.entering[i] += float64(coef * x)
			}
		}
	}
	m.work += int64(n * len(m.columns[c].rows))
	out, ratio := -1, 0.0
	for i, e := range m.entering {
		if e <= 1e-8 {
			continue
		}
		r := max(0, m.level[i]) / e
		if out < 0 || r < ratio || r == ratio && m.basis[i] < m.basis[out] {
			out, ratio = i, r
		}
	}
	if out < 0 {
		return false
	}
	m.exchange(out, c, ratio)
	for j, x := range m.inverse[out*n : (out+1)*n] {
		m.dual[j] += float64(reduced * x)
	}
	return true
}

// exchange updates the inverse and the levels: column c becomes basic in row out.
func (m *master) exchange(out, c int, ratio float64) {
	n := m.rows
	line := m.inverse[out*n : (out+1)*n]
	pivot := m.entering[out]
	var columns []int
	for j, x := range line {
		if x != 0 {
			line[j] = x / pivot
			columns = append(columns, j)
		}
	}
	for i, e := range m.entering {
		if e == 0 || i == out {
			continue
		}
		m.level[i] = max(0, m.level[i]-float64(ratio*e))
		other := m.inverse[i*n : (i+1)*n]
		for _, j := range columns {
			other[j] -= float64(e * line[j])
		}
		m.work += int64(len(columns))
	}
	m.work += int64(2 * n)
	m.level[out] = ratio
	m.inBasis[m.basis[out]], m.inBasis[c] = false, true
	m.basis[out] = c
}

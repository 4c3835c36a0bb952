package workload

// Mixed returns a workload without pods: a pool of spot and on-demand nodes of 2 to 16 processors, with a disruption
// budget and otherwise default settings.
func Mixed() *Set {
	pool := poolShape{name: "default", budget: budgetDefault, requirements: []object{
		requirement(LabelCapacity, "In", onDemand, spot), requirement(LabelArch, "In", "amd64"),
		requirement(labelCPU, "In", "2", "4", "8", "16"),
	}}
	return &Set{name: "mixed", types: catalog(everydayTypes, 1, false), pools: []poolShape{pool}}
}

// Deployment is a size of pods.
type Deployment struct {
	Name string
	Room Room
}

// Deployments generates everyday Deployments.
func Deployments(count, seed int) []Deployment {
	r := newRandom("deployments", count, seed)
	all := make([]Deployment, count)
	for i := range all {
		all[i] = Deployment{podName("app", i), Room{pick(r, everydayCPU), pick(r, everydayMemory), 1}}
	}
	return all
}

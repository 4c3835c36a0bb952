package catalog

import (
	"slices"
	"testing"
)

// TestFeatures compares the rules with what DescribeInstanceTypes has answered about these types in 2026 (a copy of the
// answers is in getmoto/moto, moto/ec2/resources/instance_types.json).
func TestFeatures(t *testing.T) {
	type features struct{ ena, enclaves, nested bool }
	for name, want := range map[string]features{
		"c7g.medium":         {true, false, false},
		"c7g.large":          {true, true, false},
		"c7g.metal":          {true, false, false},
		"c7gd.12xlarge":      {true, true, false},
		"c8i.4xlarge":        {true, true, true},
		"c8i.96xlarge":       {true, true, true},
		"c8i-flex.12xlarge":  {true, false, true},
		"c8ib.2xlarge":       {true, true, false},
		"g5.xlarge":          {true, true, false},
		"hpc7g.4xlarge":      {true, false, false},
		"hpc8a.96xlarge":     {true, false, false},
		"i2.2xlarge":         {false, false, false},
		"inf1.xlarge":        {true, true, false},
		"inf2.24xlarge":      {true, true, false},
		"m8id.large":         {true, false, false},
		"m8id.metal-48xl":    {true, false, false},
		"m8id.xlarge":        {true, true, false},
		"r8a.2xlarge":        {true, true, false},
		"t3a.2xlarge":        {true, false, false},
		"trn1n.32xlarge":     {true, false, false},
		"trn2.3xlarge":       {true, true, false},
		"u-6tb1.56xlarge":    {true, false, false},
		"u7i-12tb.224xlarge": {true, false, false},
		"x8i.large":          {true, false, false},
		"x8i.xlarge":         {true, true, false},
		"z1d.12xlarge":       {true, true, false},
		// Of the pages that the rules name.
		"c8i-flex.large": {true, false, true},
		"r8i.xlarge":     {true, true, true},
		"m5.xlarge":      {true, true, false},
		"m4.16xlarge":    {true, false, false},
		"m4.10xlarge":    {false, false, false},
		"i3.large":       {true, false, false},
		"t4g.2xlarge":    {true, false, false},
		"a1.xlarge":      {true, false, false},
	} {
		of, found := Load().Type(name)
		if !found {
			t.Errorf("%s is not in the file", name)
			continue
		}
		if got := (features{of.ENA, of.NitroEnclaves, of.NestedVirtualization}); got != want {
			t.Errorf("%s has %+v, want %+v", name, got, want)
		}
	}
}

// TestPlacementStrategies compares the rule with DescribeInstanceTypes: 89 of the 1,373 types lack cluster placement
// groups, among them each kind of the rule.
func TestPlacementStrategies(t *testing.T) {
	lacking := 0
	for i := range Load().Types {
		if of := &Load().Types[i]; !slices.Contains(of.PlacementStrategies, StrategyCluster) {
			lacking++
		}
	}
	if lacking != 89 {
		t.Errorf("%d types lack cluster placement groups, want 89", lacking)
	}
	for name, want := range map[string]bool{"t4g.2xlarge": false, "m8i-flex.large": false, "mac2.metal": false, "m3.large": false,
		"vt1.3xlarge": false, "m5.large": true, "hpc7g.4xlarge": true, "u-6tb1.56xlarge": true, "c3.large": true} {
		of, _ := Load().Type(name)
		if got := slices.Contains(of.PlacementStrategies, StrategyCluster); got != want {
			t.Errorf("%s supports cluster placement groups: %v, want %v", name, got, want)
		}
		if !slices.Contains(of.PlacementStrategies, StrategySpread) || !slices.Contains(of.PlacementStrategies, StrategyPartition) {
			t.Errorf("%s supports %v, want spread and partition", name, of.PlacementStrategies)
		}
	}
}

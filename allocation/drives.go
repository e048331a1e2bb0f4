package allocation

import "allocator/inventory"

// fits tells whether one drive of the kind d can serve group g. An unknown medium or interface serves no group that
// asks for one.
func (g DriveGroup) fits(d inventory.Drive) bool {
	return d.NominalGB >= g.NominalGBMin &&
		(g.Medium == "" || d.Medium == g.Medium) &&
		(g.Interface == "" || d.Interface == g.Interface)
}

// drivesFit tells whether every group can have its drives at the same time, no drive serving two groups.
//
// By Hall's theorem that is so if and only if, for every set of groups, the drives that fit at least one of them are as
// many as the set asks for together. The database function drives_fit says the same by the same theorem; the generated
// test also holds both against a search that tries every assignment.
func drivesFit(drives []inventory.Drive, groups []DriveGroup) bool {
	for set := 1; set < 1<<len(groups); set++ {
		var wanted, have int64
		for i, g := range groups {
			if set&(1<<i) != 0 {
				wanted += g.CountMin
			}
		}
		for _, d := range drives {
			if fitsAny(d, groups, set) {
				have += d.Count
			}
		}
		if have < wanted {
			return false
		}
	}
	return true
}

func fitsAny(d inventory.Drive, groups []DriveGroup, set int) bool {
	for i, g := range groups {
		if set&(1<<i) != 0 && g.fits(d) {
			return true
		}
	}
	return false
}

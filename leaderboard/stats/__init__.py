"""Every number on the site, as pure functions over plain records; defined in mkb-1."""

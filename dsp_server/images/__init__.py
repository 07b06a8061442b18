"""Images that come with the package."""

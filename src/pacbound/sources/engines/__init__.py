"""The engines that hold rows of files as frames: `parts` opens files, in each of them."""
